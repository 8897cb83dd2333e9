package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Names of the components, as they are called everywhere: programs, logs, and
// keys in the answer of `up`.
const (
	etcdName       = "etcd"
	apiServerName  = "kube-apiserver"
	managerName    = "kube-controller-manager"
	schedulerName  = "kube-scheduler"
	kubectlName    = "kubectl"
	allControllers = "*"
)

// Deleting namespaces, owners, and what every namespace and ServiceAccount is
// expected to have; and ClusterRoles that aggregate. The short names are the
// ones that every version since 1.18 takes.
var fewControllers = []string{"namespace", "garbagecollector", "serviceaccount",
	"serviceaccount-token", "root-ca-cert-publisher", "clusterrole-aggregation"}

func etcdURL(s state) string      { return fmt.Sprintf("https://127.0.0.1:%d", s.EtcdPort) }
func apiServerURL(s state) string { return fmt.Sprintf("https://127.0.0.1:%d", s.APIServerPort) }

func etcdFlags(l layout, s state) []string {
	// One member never talks to a peer, but etcd insists on listening.
	const peer = "https://127.0.0.1:0"
	return []string{
		"--name=devcluster",
		"--data-dir=" + l.etcdData(),
		"--listen-client-urls=" + etcdURL(s),
		"--advertise-client-urls=" + etcdURL(s),
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=devcluster=" + peer,
		"--cert-file=" + l.pki("etcd.crt"),
		"--key-file=" + l.pki("etcd.key"),
		"--client-cert-auth",
		"--trusted-ca-file=" + l.pki("etcd-ca.crt"),
		"--peer-cert-file=" + l.pki("etcd.crt"),
		"--peer-key-file=" + l.pki("etcd.key"),
		"--peer-client-cert-auth",
		"--peer-trusted-ca-file=" + l.pki("etcd-ca.crt"),
		// The data need to outlive the processes, not the machine.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

func apiServerFlags(l layout, s state) []string {
	return []string{
		"--etcd-servers=" + etcdURL(s),
		"--etcd-cafile=" + l.pki("etcd-ca.crt"),
		"--etcd-certfile=" + l.pki("etcd-client.crt"),
		"--etcd-keyfile=" + l.pki("etcd-client.key"),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", s.APIServerPort),
		"--tls-cert-file=" + l.pki("apiserver.crt"),
		"--tls-private-key-file=" + l.pki("apiserver.key"),
		"--client-ca-file=" + l.pki("ca.crt"),
		// Endpoints may not be loopback addresses: the Service
		// kubernetes.default stays without any.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-signing-key-file=" + l.pki("service-account.key"),
		"--service-account-key-file=" + l.pki("service-account.pub"),
		"--authorization-mode=RBAC",
		// Clusters that run OpenShift have it: an owner reference that blocks
		// deletion needs the right to change the owner's finalizers.
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
		"--allow-privileged=true",
		// There is no kube-proxy: a webhook given as a Service is called at
		// the addresses of its EndpointSlices.
		"--enable-aggregator-routing=true",
		"--audit-policy-file=" + l.auditPolicy(),
		"--audit-log-path=" + l.auditLog(),
		"--audit-log-format=json",
		// An answered request is in the log; tests read it right after.
		"--audit-log-mode=blocking",
		// Megabytes: never rotated under a reader.
		"--audit-log-maxsize=1000000",
	}
}

func managerFlags(l layout, controllers string) []string {
	return []string{
		"--kubeconfig=" + l.ownKubeconfig(managerName),
		"--controllers=" + controllers,
		// The audit log then tells which controller did what.
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + l.pki("service-account.key"),
		"--root-ca-file=" + l.pki("ca.crt"),
		"--cluster-signing-cert-file=" + l.pki("ca.crt"),
		"--cluster-signing-key-file=" + l.pki("ca.key"),
		"--leader-elect=false",
		// No port of its own: nothing here scrapes it.
		"--secure-port=0",
		"--namespace-sync-period=30s",
		// The default of 20 a second makes deleting many objects slow.
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}
}

func schedulerFlags(l layout) []string {
	return []string{
		"--kubeconfig=" + l.ownKubeconfig(schedulerName),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}
}

// controllerList is the value of --controllers.
func controllerList(all bool) string {
	if all {
		return allControllers
	}
	return strings.Join(fewControllers, ",")
}

var auditLevels = []string{"None", "Metadata", "Request", "RequestResponse"}

func writeAuditPolicy(l layout, level string) error {
	policy := map[string]any{
		"apiVersion": "audit.k8s.io/v1",
		"kind":       "Policy",
		// One line per request: the one that has the response code.
		"omitStages": []string{"RequestReceived"},
		"rules":      []any{map[string]string{"level": level}},
	}
	raw, err := json.Marshal(policy)
	if err != nil {
		return err
	}
	return os.WriteFile(l.auditPolicy(), append(raw, '\n'), 0o600)
}

// makeAuditLog makes the empty file: kube-apiserver appends to one that is
// there, and others may then empty it while it runs.
func makeAuditLog(l layout) error {
	file, err := os.OpenFile(l.auditLog(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}
