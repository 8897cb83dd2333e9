//go:build assets

package main

import (
	"fmt"
	"os"
	"syscall"
)

// embedded is false here: everything comes from KUBEBUILDER_ASSETS, and the
// half gigabyte of modules behind the components is neither fetched nor built.
const embedded = false

var components = map[string]func(args []string) int{
	"etcd":                    execAsset,
	"kube-apiserver":          execAsset,
	"kube-controller-manager": execAsset,
	"kube-scheduler":          execAsset,
	"kubectl":                 execAsset,
}

func execAsset(args []string) int {
	program, err := findProgram(args[0])
	if err == nil {
		err = syscall.Exec(program, args, os.Environ())
	}
	fmt.Fprintf(os.Stderr, "devcluster: %v\n", err)
	return 1
}
