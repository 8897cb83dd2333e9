package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func startShell(t *testing.T, script string) (*process, chan *process) {
	t.Helper()
	exits := make(chan *process, 1)
	p, err := startProcess("sh", "/bin/sh", filepath.Join(t.TempDir(), "log"), []string{"-c", script}, exits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p, exits
}

func TestUnexpectedEndIsExplained(t *testing.T) {
	p, exits := startShell(t, "for i in $(seq 30); do echo line $i; done; echo cannot >&2; exit 3")
	if got := <-exits; got != p || got.expected.Load() {
		t.Errorf("reported %v", got)
	}
	text := p.obituary()
	for _, want := range []string{"sh ended unexpectedly (exit status 3)", p.logPath, "line 30\n  cannot"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	if strings.Contains(text, "line 1\n") {
		t.Errorf("the whole log is in %q", text)
	}
}

func TestStopAsksThenKills(t *testing.T) {
	polite, exits := startShell(t, "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.02; done")
	waitForLog(t, polite, "up")
	polite.stop(time.Minute)
	if got := <-exits; !got.expected.Load() || !got.cmd.ProcessState.Success() {
		t.Errorf("polite: %v", got.cmd.ProcessState)
	}
	deaf, exits := startShell(t, "trap '' TERM; echo up; while :; do sleep 0.02; done")
	waitForLog(t, deaf, "up")
	begin := time.Now()
	deaf.stop(100 * time.Millisecond)
	if got := <-exits; got.cmd.ProcessState.Success() || time.Since(begin) > time.Minute {
		t.Errorf("deaf: %v after %v", got.cmd.ProcessState, time.Since(begin))
	}
}

func waitForLog(t *testing.T, p *process, want string) {
	t.Helper()
	for range 3000 {
		if raw, _ := os.ReadFile(p.logPath); strings.Contains(string(raw), want) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%q never came", want)
}

func TestTailOfLongLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 3*tailBytes)+"\nend\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := tail(path, 5); len(got) > tailWidth+20 || !strings.HasSuffix(got, "\n  end") {
		t.Errorf("%d characters, %.40q", len(got), got)
	}
}

func TestAuditPolicyAndFlags(t *testing.T) {
	l := newTestLayout(t)
	if err := writeAuditPolicy(l, "Request"); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(l.auditPolicy())
	if err != nil || !strings.Contains(string(raw), `"level":"Request"`) || !strings.Contains(string(raw), "RequestReceived") {
		t.Errorf("%s, %v", raw, err)
	}
	s := state{APIServerPort: 20001, EtcdPort: 20002}
	server := strings.Join(apiServerFlags(l, s), " ")
	for _, want := range []string{"--secure-port=20001", "--etcd-servers=https://127.0.0.1:20002", "OwnerReferencesPermissionEnforcement"} {
		if !strings.Contains(server, want) {
			t.Errorf("%s is not in %s", want, server)
		}
	}
	if got := controllerList(true); got != "*" {
		t.Errorf("all controllers: %s", got)
	}
	if got := controllerList(false); !strings.Contains(got, "garbagecollector") || strings.Contains(got, "*") {
		t.Errorf("few controllers: %s", got)
	}
}
