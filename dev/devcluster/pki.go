package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// Certificates outlive any cluster of this kind, so there is no renewal.
const certLifetime = 10 * 365 * 24 * time.Hour

// serviceCIDR is what ClusterIPs come from; its first address is that of the
// Service kubernetes.default, which the serving certificate must name.
const (
	serviceCIDR       = "10.96.0.0/16"
	kubernetesService = "10.96.0.1"
)

// authority signs certificates. The API server and etcd have one each: whoever
// gets a client certificate from the cluster must not be able to read etcd.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// leaf describes one certificate to issue.
type leaf struct {
	name   string // of its files, without ending
	user   string
	groups []string
	server bool
}

var apiLeaves = []leaf{
	{name: "apiserver", user: "kube-apiserver", server: true},
	{name: "admin", user: "devcluster-admin", groups: []string{"system:masters"}},
	{name: "kube-controller-manager", user: "system:kube-controller-manager"},
	{name: "kube-scheduler", user: "system:kube-scheduler"},
}

var etcdLeaves = []leaf{
	{name: "etcd", user: "etcd", server: true},
	{name: "etcd-client", user: "kube-apiserver"},
}

// ensurePKI writes what is missing as a whole, or nothing when the directory
// was already complete: tokens and kubeconfigs handed out stay good.
func ensurePKI(l layout) error {
	done := l.pki("complete")
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	for _, set := range []struct {
		ca     string
		leaves []leaf
	}{{"ca", apiLeaves}, {"etcd-ca", etcdLeaves}} {
		ca, err := newAuthority("devcluster " + set.ca)
		if err != nil {
			return err
		}
		if err := writePair(l, set.ca, ca.cert.Raw, ca.key); err != nil {
			return err
		}
		for _, want := range set.leaves {
			der, key, err := ca.issue(want)
			if err != nil {
				return fmt.Errorf("certificate %s: %w", want.name, err)
			}
			if err := writePair(l, want.name, der, key); err != nil {
				return err
			}
		}
	}
	if err := writeServiceAccountKeys(l); err != nil {
		return err
	}
	return os.WriteFile(done, nil, 0o600)
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{cert, key}, err
}

func (a *authority) issue(want leaf) ([]byte, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template, err := newTemplate(pkix.Name{CommonName: want.user, Organization: want.groups})
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if want.server {
		// etcd also dials itself with its serving certificate.
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default",
			"kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(kubernetesService)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	return der, key, err
}

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, err
	}
	// An hour back, for clients whose clock is a little late.
	start := time.Now().Add(-time.Hour)
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject,
		NotBefore: start, NotAfter: start.Add(certLifetime),
	}, nil
}

func writePair(l layout, name string, der []byte, key *ecdsa.PrivateKey) error {
	if err := writePEM(l.pki(name+".crt"), "CERTIFICATE", der); err != nil {
		return err
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(l.pki(name+".key"), "EC PRIVATE KEY", raw)
}

// writeServiceAccountKeys makes the pair that signs and checks tokens.
func writeServiceAccountKeys(l layout) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return errors.Join(
		writePEM(l.pki("service-account.key"), "EC PRIVATE KEY", private),
		writePEM(l.pki("service-account.pub"), "PUBLIC KEY", public),
	)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
