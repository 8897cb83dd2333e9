package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const probeEvery = 100 * time.Millisecond

// prober asks over TLS as the holder of one client certificate.
type prober struct{ client *http.Client }

func newProber(l layout, caName, certName string) (*prober, error) {
	ca, err := os.ReadFile(l.pki(caName + ".crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("no certificate in " + l.pki(caName+".crt"))
	}
	cert, err := tls.LoadX509KeyPair(l.pki(certName+".crt"), l.pki(certName+".key"))
	if err != nil {
		return nil, err
	}
	return &prober{&http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			// No connection is kept: after a restart it would be dead.
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}},
		},
	}}, nil
}

// wait asks until url answers 200, or ctx ends: then the error tells what the
// last answer was.
func (p *prober) wait(ctx context.Context, url string) error {
	last := errors.New("not asked yet")
	for {
		err := p.once(ctx, url)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer well: %w", url, last)
		case <-time.After(probeEvery):
		}
	}
}

func (p *prober) once(ctx context.Context, url string) error {
	return p.ask(ctx, http.MethodGet, url)
}

// ask fails unless the answer is 200.
func (p *prober) ask(ctx context.Context, method, url string) error {
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}
