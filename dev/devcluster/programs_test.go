package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestProgramsOfAssets(t *testing.T) {
	assets := t.TempDir()
	t.Setenv(assetsVariable, assets)
	if _, err := findProgram(etcdName); !errors.Is(err, errNoProgram) {
		t.Errorf("missing: %v", err)
	}
	path := filepath.Join(assets, etcdName)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := findProgram(etcdName); !errors.Is(err, errNoProgram) {
		t.Errorf("not executable: %v", err)
	}
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := findProgram(etcdName); err != nil || got != path {
		t.Errorf("found %q, %v", got, err)
	}
}

func TestProgramsWithoutAssets(t *testing.T) {
	t.Setenv(assetsVariable, "")
	_, err := findProgram(etcdName)
	if embedded != (err == nil) {
		t.Errorf("embedded is %v: %v", embedded, err)
	}
}

func TestComponentEnvironment(t *testing.T) {
	got := componentEnvironment([]string{"PATH=/bin", "ETCD_NAME=x", "https_proxy=http://p", "HTTP_PROXY=http://p", "KUBECONFIG=k", "A=B=C"})
	if want := []string{"PATH=/bin", "A=B=C"}; !reflect.DeepEqual(got, want) {
		t.Errorf("kept %q", got)
	}
}
