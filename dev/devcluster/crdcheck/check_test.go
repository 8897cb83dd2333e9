package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFiles(t *testing.T) {
	for name, want := range map[string]string{
		"good.yaml":             "ok things.example.com\n",
		"costly.yaml":           "exceeds budget",
		"unknown-function.yaml": "undeclared reference to 'fold'",
		"too-new.yaml":          "additionalProperties.x-kubernetes-validations[0].messageExpression: this version does not know it",
		"not-structural.yaml":   "openAPIV3Schema.type: Required value",
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run([]string{filepath.Join("testdata", name)}, &out, &errs)
			if good := name == "good.yaml"; good != (code == 0) {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(out.String(), want) || errs.Len() > 0 {
				t.Errorf("printed %q and %q", out.String(), errs.String())
			}
		})
	}
}

func TestUnknownFieldIsToldOnce(t *testing.T) {
	raw, err := os.ReadFile("testdata/too-new.yaml")
	if err != nil {
		t.Fatal(err)
	}
	results, err := checkFile(raw)
	if err != nil || len(results) != 1 {
		t.Fatal(results, err)
	}
	told := 0
	for _, problem := range results[0].problems {
		told += strings.Count(problem.Error(), "status.surprise")
	}
	if told != 1 {
		t.Errorf("told %d times: %v", told, results[0].problems)
	}
}

func TestWhatIsNoDefinition(t *testing.T) {
	for document, want := range map[string]string{
		"":                                  "no CustomResourceDefinition in it",
		"---\n---\n# nothing\n":             "no CustomResourceDefinition in it",
		"apiVersion: v1\nkind: ConfigMap\n": "no kind \"ConfigMap\"",
		"a: [":                              "yaml",
	} {
		_, err := checkFile([]byte(document))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", document, err)
		}
	}
}

func TestSeveralFilesAreAllChecked(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"testdata/none.yaml", "testdata/good.yaml"}, &out, &errs); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if out.String() != "ok things.example.com\n" || !strings.Contains(errs.String(), "none.yaml") {
		t.Errorf("printed %q and %q", out.String(), errs.String())
	}
	if code := run(nil, &out, &errs); code != 2 {
		t.Errorf("no files: exit code %d", code)
	}
}
