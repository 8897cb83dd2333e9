package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestIsUpOver(t *testing.T) {
	for line, want := range map[string]bool{
		"devcluster up --dir /a/b":                   true,
		"devcluster up --scheduler --dir /a/b -x":    true,
		"devcluster up --dir=/a/b":                   true,
		"devcluster up -dir /a/b/":                   true,
		"devcluster up --dir b":                      true,
		"devcluster up --dir=../a/b":                 true,
		"devcluster up --dir /a/bb":                  false,
		"devcluster up --dir c":                      false,
		"devcluster up --dir":                        false,
		"devcluster down --dir /a/b":                 false,
		"devcluster":                                 false,
		"vim /a/b":                                   false,
		"etcd --data-dir /a/b/etcd":                  false,
		"devcluster up --crds dir /a/b":              false,
		"devcluster up --crds /a/b --dir /elsewhere": false,
	} {
		if got := isUpOver(strings.Fields(line), "/a", "/a/b"); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

// sleeper is a process whose command line reads like a supervisor's.
func sleeper(t *testing.T, argv ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = argv
	cmd.Env = append(os.Environ(), "DEVCLUSTER_TEST_SLEEP=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Reaped at once: a zombie would still be found under its number.
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
	return cmd
}

func TestMain(m *testing.M) {
	if os.Getenv("DEVCLUSTER_TEST_SLEEP") != "" {
		time.Sleep(time.Minute)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func waitForArgs(t *testing.T, pid int, want string) {
	t.Helper()
	for range 6000 {
		raw, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if bytes.Contains(raw, []byte(want)) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("process %d did not become %q", pid, want)
}

func TestDownStopsItsOwnOnly(t *testing.T) {
	mine, other := newTestLayout(t), newTestLayout(t)
	cmd := sleeper(t, "devcluster", "up", "--dir", mine.dir)
	waitForArgs(t, cmd.Process.Pid, mine.dir)
	for _, l := range []layout{mine, other} {
		if err := os.WriteFile(l.pidFile(), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	var out, errs bytes.Buffer
	if code := down([]string{"--dir", other.dir}, &out, &errs); code != 0 || !strings.Contains(errs.String(), "none runs") {
		t.Errorf("somebody else's number: %d, %s", code, errs.String())
	}
	if !runsOver(cmd.Process.Pid, mine) {
		t.Fatal("it was stopped")
	}
	errs.Reset()
	if code := down([]string{"--dir", mine.dir}, &out, &errs); code != 0 || !strings.Contains(errs.String(), "stopped") {
		t.Errorf("its own: %d, %s", code, errs.String())
	}
	if runsOver(cmd.Process.Pid, mine) {
		t.Error("it still runs")
	}
}

func TestDownWithoutOne(t *testing.T) {
	l := newTestLayout(t)
	for _, content := range []string{"", "x", "1", "-1", "999999999"} {
		if err := os.WriteFile(l.pidFile(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if pid, ok := supervisorOf(l); ok {
			t.Errorf("%q gave %d", content, pid)
		}
	}
}
