package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestForeignDirectoriesAreRefused(t *testing.T) {
	l := layout{t.TempDir()}
	if err := l.refuseForeign(); err != nil {
		t.Errorf("empty: %v", err)
	}
	if err := (layout{filepath.Join(l.dir, "new")}).refuseForeign(); err != nil {
		t.Errorf("not there yet: %v", err)
	}
	precious := l.path("etcd")
	if err := os.Mkdir(precious, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.refuseForeign(); err == nil || !strings.Contains(err.Error(), `"etcd"`) {
		t.Errorf("foreign: %v", err)
	}
}

func TestPrepareDeletesOnlyItsOwn(t *testing.T) {
	l := newTestLayout(t)
	for _, path := range []string{l.path("etcd", "data"), l.path("notes")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := state{APIServerPort: 3, EtcdPort: 4}
	if err := l.prepare(true, want); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(l.path("etcd", "data")); err != nil {
		t.Errorf("kept data: %v", err)
	}
	if got, found, err := l.readState(); got != want || !found || err != nil {
		t.Errorf("state %v, %v, %v", got, found, err)
	}
	if err := l.prepare(false, want); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(l.path("etcd", "data")); err == nil {
		t.Error("old data are still there")
	}
	if _, err := os.Stat(l.path("notes")); err != nil {
		t.Errorf("somebody's file: %v", err)
	}
}

func TestStateThatCannotBeUsed(t *testing.T) {
	l := newTestLayout(t)
	for _, content := range []string{"", "{", `{"apiServerPort": 1}`} {
		if err := os.WriteFile(l.stateFile(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := l.readState(); err == nil || !strings.Contains(err.Error(), l.stateFile()) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

func TestOneSupervisorPerDirectory(t *testing.T) {
	l := layout{filepath.Join(t.TempDir(), "new")}
	first, err := l.lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.lock(); err == nil || !strings.Contains(err.Error(), "another devcluster") {
		t.Errorf("second: %v", err)
	}
	first.Close()
	again, err := l.lock()
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

func TestDefinitionFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := definitionFiles(dir); err == nil {
		t.Error("an empty directory is taken")
	}
	for _, name := range []string{"b.yml", "a.yaml", "kustomization.yaml", "README.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := definitionFiles(dir)
	if want := filepath.Join(dir, "a.yaml") + " " + filepath.Join(dir, "b.yml"); err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v, %v", got, err)
	}
	one := filepath.Join(dir, "README.md")
	if got, err := definitionFiles(one); err != nil || len(got) != 1 || got[0] != one {
		t.Errorf("a file by name: %v, %v", got, err)
	}
}
