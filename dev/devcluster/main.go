// Command devcluster is a Kubernetes control plane in one binary: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler and kubectl, chosen
// by argv[0] or by the first argument, and a supervisor (`up`, `down`) that
// runs them together for demonstrations and tests.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// exitUsage is what a wrong command line ends with, as shells do it.
const exitUsage = 2

func main() {
	os.Exit(run(os.Args, os.Stdout, os.Stderr))
}

// run picks what to be. The components read os.Args themselves, so it is cut
// down to what each would see as a program of its own.
func run(argv []string, stdout, stderr io.Writer) int {
	name, args := dispatch(argv)
	if start, ok := components[name]; ok {
		os.Args = args
		return start(args)
	}
	switch name {
	case "up":
		return up(args[1:], stdout, stderr)
	case "down":
		return down(args[1:], stdout, stderr)
	case "help", "-h", "--help":
		usage(stdout)
		return 0
	case "":
		usage(stderr)
		return exitUsage
	}
	fmt.Fprintf(stderr, "devcluster: there is no command %q\n", name)
	usage(stderr)
	return exitUsage
}

// dispatch returns the name of what is asked for and its argument vector, its
// own name first. argv[0] wins only when it names a component: the binary may
// itself be called anything.
func dispatch(argv []string) (string, []string) {
	if len(argv) == 0 {
		return "", nil
	}
	base := filepath.Base(argv[0])
	if _, ok := components[base]; ok {
		return base, append([]string{base}, argv[1:]...)
	}
	if len(argv) < 2 {
		return "", nil
	}
	return argv[1], argv[1:]
}

func usage(w io.Writer) {
	names := make([]string, 0, len(components))
	for name := range components {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(w, `usage:
  devcluster up --dir DIR [flags]    run a control plane until stopped
  devcluster down --dir DIR          stop the one that runs over DIR
  devcluster COMPONENT [args]        be one of: %s
`, strings.Join(names, ", "))
}
