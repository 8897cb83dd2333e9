package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// assetsVariable is the one that controller-runtime's envtest made usual.
const assetsVariable = "KUBEBUILDER_ASSETS"

// errNoProgram is wrapped where a program is missing from KUBEBUILDER_ASSETS,
// which for some of them is not fatal.
var errNoProgram = errors.New("no such program")

// findProgram gives the path of the executable to start as component name.
func findProgram(name string) (string, error) {
	assets := os.Getenv(assetsVariable)
	if assets == "" {
		if !embedded {
			return "", fmt.Errorf("this build has no components of its own: set %s to a directory with etcd, kube-apiserver and kubectl", assetsVariable)
		}
		return os.Executable()
	}
	program := filepath.Join(assets, name)
	info, err := os.Stat(program)
	if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%w: %s is not an executable file (%s is set)", errNoProgram, program, assetsVariable)
	}
	return filepath.Abs(program)
}

// componentEnvironment is the environment without what would silently change a
// component: etcd takes every flag from ETCD_*, and a proxy would take the API
// server's calls to webhooks away from this machine.
func componentEnvironment(environ []string) []string {
	kept := make([]string, 0, len(environ))
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		upper := strings.ToUpper(name)
		if strings.HasPrefix(upper, "ETCD_") || upper == "HTTP_PROXY" || upper == "HTTPS_PROXY" ||
			upper == "ALL_PROXY" || upper == "KUBECONFIG" {
			continue
		}
		kept = append(kept, entry)
	}
	return kept
}
