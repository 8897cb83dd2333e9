package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"os"
	"testing"
	"time"
)

func newTestLayout(t *testing.T) layout {
	t.Helper()
	l := layout{t.TempDir()}
	if err := l.prepare(false, state{APIServerPort: 1, EtcdPort: 2}); err != nil {
		t.Fatal(err)
	}
	return l
}

func loadCert(t *testing.T, l layout, name string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(l.pki(name+".crt"), l.pki(name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func poolOf(t *testing.T, l layout, ca string) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(loadCert(t, l, ca))
	return pool
}

func TestCertificates(t *testing.T) {
	l := newTestLayout(t)
	if err := ensurePKI(l); err != nil {
		t.Fatal(err)
	}
	for ca, leaves := range map[string][]leaf{"ca": apiLeaves, "etcd-ca": etcdLeaves} {
		other := map[string]string{"ca": "etcd-ca", "etcd-ca": "ca"}[ca]
		for _, want := range leaves {
			cert := loadCert(t, l, want.name)
			usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
			if _, err := cert.Verify(x509.VerifyOptions{Roots: poolOf(t, l, ca), KeyUsages: usage}); err != nil {
				t.Errorf("%s: %v", want.name, err)
			}
			if _, err := cert.Verify(x509.VerifyOptions{Roots: poolOf(t, l, other), KeyUsages: usage}); err == nil {
				t.Errorf("%s is also good for %s", want.name, other)
			}
			if cert.Subject.CommonName != want.user || cert.NotAfter.Before(time.Now().AddDate(5, 0, 0)) {
				t.Errorf("%s: %v until %v", want.name, cert.Subject, cert.NotAfter)
			}
			server := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
			_, err := cert.Verify(x509.VerifyOptions{Roots: poolOf(t, l, ca), KeyUsages: server, DNSName: "127.0.0.1"})
			if want.server != (err == nil) {
				t.Errorf("%s as a server: %v", want.name, err)
			}
		}
	}
	admin := loadCert(t, l, "admin")
	if got := admin.Subject.Organization; len(got) != 1 || got[0] != "system:masters" {
		t.Errorf("groups of admin: %v", got)
	}
	for _, name := range []string{"localhost", "kubernetes.default.svc", kubernetesService} {
		if err := loadCert(t, l, "apiserver").VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	_, network, err := net.ParseCIDR(serviceCIDR)
	if err != nil || !network.Contains(net.ParseIP(kubernetesService)) {
		t.Errorf("%s is not in %s", kubernetesService, serviceCIDR)
	}
}

func TestKeysArePrivate(t *testing.T) {
	l := newTestLayout(t)
	if err := ensurePKI(l); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(l.path("pki"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", entry.Name(), info.Mode(), err)
		}
	}
}

// A PKI that was not written to its end is of no use and is recreated; a whole
// one is kept.
func TestPKIIsKeptOnceComplete(t *testing.T) {
	l := newTestLayout(t)
	if err := ensurePKI(l); err != nil {
		t.Fatal(err)
	}
	first := loadCert(t, l, "ca")
	if err := ensurePKI(l); err != nil {
		t.Fatal(err)
	}
	if !first.Equal(loadCert(t, l, "ca")) {
		t.Error("the authority changed")
	}
	if err := os.Remove(l.pki("complete")); err != nil {
		t.Fatal(err)
	}
	if err := ensurePKI(l); err != nil {
		t.Fatal(err)
	}
	if first.Equal(loadCert(t, l, "ca")) {
		t.Error("half a PKI was kept")
	}
}

func TestKubeconfig(t *testing.T) {
	l := newTestLayout(t)
	if err := ensurePKI(l); err != nil {
		t.Fatal(err)
	}
	if err := writeKubeconfig(l, l.kubeconfig(), "https://127.0.0.1:1", "admin"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(l.kubeconfig())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	raw, err := os.ReadFile(l.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	var config kubeconfig
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(config.Users[0].User.Cert, config.Users[0].User.Key); err != nil {
		t.Error(err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(config.Clusters[0].Cluster.CA) {
		t.Error("no CA in it")
	}
	context := config.Contexts[0]
	if config.CurrentContext != context.Name || context.Context.Cluster != config.Clusters[0].Name || context.Context.User != config.Users[0].Name {
		t.Errorf("names do not fit: %+v", config)
	}
}
