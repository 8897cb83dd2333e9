// Command crdcheck tells whether an old API server would take a
// CustomResourceDefinition, by that server's own validation: structural schema,
// CEL compilation, CEL cost budget.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run checks all files, also after one with errors: one run shows all there is
// to mend.
func run(files []string, stdout, stderr io.Writer) int {
	if len(files) == 0 {
		fmt.Fprintln(stderr, "usage: crdcheck FILE…")
		return 2
	}
	code := 0
	for _, file := range files {
		if name := filepath.Base(file); name == "kustomization.yaml" || name == "kustomization.yml" {
			continue // beside the definitions in a folder given as *.yaml
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintf(stderr, "crdcheck: %v\n", err)
			code = 1
			continue
		}
		results, err := checkFile(raw)
		if err != nil {
			fmt.Fprintf(stdout, "%s: %v\n", file, err)
			code = 1
			continue
		}
		for _, result := range results {
			if len(result.problems) == 0 {
				fmt.Fprintf(stdout, "ok %s\n", result.name)
				continue
			}
			code = 1
			for _, problem := range result.problems {
				fmt.Fprintf(stdout, "%s: %s: %v\n", file, result.name, problem)
			}
		}
	}
	return code
}
