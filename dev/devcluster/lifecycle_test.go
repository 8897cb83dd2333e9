package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// binaryVariable names a built devcluster to try as a whole; the tests of this
// file need one, and are skipped where it is not set.
const binaryVariable = "DEVCLUSTER_BINARY"

type event struct {
	Event      string
	Server     string
	Kubeconfig string
	AuditLog   string
	Kubectl    []string
	Pid        int
	Pids       map[string]int
}

type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	stderr *strings.Builder
	ready  event
	ended  chan struct{}
}

func startUp(t *testing.T, dir string, flags ...string) *running {
	t.Helper()
	binary := os.Getenv(binaryVariable)
	if binary == "" {
		t.Skipf("%s is not set", binaryVariable)
	}
	r := &running{t: t, stderr: &strings.Builder{}, ended: make(chan struct{})}
	r.cmd = exec.Command(binary, append([]string{"up", "--dir", dir}, flags...)...)
	r.cmd.Stderr = r.stderr
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Stdout = write
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	go func() { _ = r.cmd.Wait(); close(r.ended) }()
	t.Cleanup(func() { _ = r.cmd.Process.Kill(); <-r.ended; read.Close() })
	r.lines = bufio.NewScanner(read)
	r.ready = r.next("ready")
	return r
}

// next reads the next line, which must be of that event.
func (r *running) next(want string) event {
	r.t.Helper()
	var e event
	if !r.lines.Scan() {
		<-r.ended
		r.t.Fatalf("no %s: %s", want, r.stderr)
	}
	if err := json.Unmarshal(r.lines.Bytes(), &e); err != nil || e.Event != want {
		r.t.Fatalf("%s instead of %s: %v", r.lines.Text(), want, err)
	}
	return e
}

func (r *running) kubectl(args ...string) (string, error) {
	args = append(append(r.ready.Kubectl[1:], "--kubeconfig", r.ready.Kubeconfig), args...)
	out, err := exec.Command(r.ready.Kubectl[0], args...).CombinedOutput()
	return string(out), err
}

func (r *running) mustKubectl(args ...string) string {
	r.t.Helper()
	out, err := r.kubectl(args...)
	if err != nil {
		r.t.Fatalf("kubectl %v: %v: %s", args, err, out)
	}
	return out
}

// waitForEnd gives the exit code, and fails when anything is left over.
func (r *running) waitForEnd(limit time.Duration, pids map[string]int) int {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(limit):
		r.t.Fatalf("it still runs after %s", limit)
	}
	for name, pid := range pids {
		if !goneSoon(pid) {
			r.t.Errorf("%s (pid %d) is left over", name, pid)
		}
	}
	return r.cmd.ProcessState.ExitCode()
}

// goneSoon waits a minute, as a disk may stall. It also takes a zombie as gone:
// its new parent may be slow to reap it.
func goneSoon(pid int) bool {
	for range 3000 {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(raw), ") Z ") {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

func TestRestartsKeepEverything(t *testing.T) {
	dir := t.TempDir()
	first := startUp(t, dir)
	first.mustKubectl("create", "configmap", "one")
	raw, err := os.ReadFile(first.ready.AuditLog)
	if err != nil || !strings.Contains(string(raw), `"name":"one"`) {
		t.Errorf("the request is not in the audit log: %v", err)
	}

	_ = first.cmd.Process.Signal(syscall.SIGHUP)
	back := first.next("apiserver-ready")
	if back.Server != first.ready.Server || back.Pids[apiServerName] == first.ready.Pids[apiServerName] || back.Pids[etcdName] != first.ready.Pids[etcdName] {
		t.Errorf("restarted %+v to %+v", first.ready, back)
	}
	first.mustKubectl("get", "configmap", "one")

	_ = first.cmd.Process.Signal(syscall.SIGUSR2)
	first.next("apiserver-stopped")
	if out, err := first.kubectl("get", "configmap", "one"); err == nil {
		t.Errorf("it answers while stopped: %s", out)
	}
	_ = first.cmd.Process.Signal(syscall.SIGHUP)
	pids := first.next("apiserver-ready").Pids

	_ = first.cmd.Process.Signal(syscall.SIGTERM)
	if code := first.waitForEnd(time.Minute, pids); code != 0 {
		t.Errorf("exit code %d: %s", code, first.stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "pid")); err == nil {
		t.Error("the pid file is left over")
	}

	second := startUp(t, dir, "--keep-data")
	if second.ready.Server != first.ready.Server {
		t.Errorf("moved from %s to %s", first.ready.Server, second.ready.Server)
	}
	second.mustKubectl("get", "configmap", "one")
	_ = second.cmd.Process.Kill()
	second.waitForEnd(time.Minute, second.ready.Pids)

	third := startUp(t, dir)
	if out, err := third.kubectl("get", "configmap", "one"); err == nil {
		t.Errorf("old data without --keep-data: %s", out)
	}
}

func TestEndOfAChildIsTold(t *testing.T) {
	r := startUp(t, t.TempDir())
	_ = syscall.Kill(r.ready.Pids[etcdName], syscall.SIGKILL)
	if code := r.waitForEnd(time.Minute, r.ready.Pids); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(r.stderr.String(), "etcd ended unexpectedly (signal: killed)") {
		t.Errorf("told: %s", r.stderr)
	}
}

// A shell in between is the parent that dies. It must have something to do
// after the supervisor, or it would become the supervisor by exec.
func TestEndOfTheParentEndsAll(t *testing.T) {
	binary := os.Getenv(binaryVariable)
	if binary == "" {
		t.Skipf("%s is not set", binaryVariable)
	}
	dir := t.TempDir()
	shell := exec.Command("/bin/sh", "-c", `"$0" up --dir "$1"; echo done`, binary, dir)
	out, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var e event
	if err != nil || json.Unmarshal([]byte(line), &e) != nil {
		t.Fatalf("%q, %v", line, err)
	}
	_ = shell.Process.Kill()
	if !goneSoon(e.Pid) {
		t.Fatal("the supervisor still runs")
	}
	for name, pid := range e.Pids {
		if !goneSoon(pid) {
			t.Errorf("%s (pid %d) is left over", name, pid)
		}
	}
	_ = shell.Wait()
}

func TestGarbageCollectionOfGivenKinds(t *testing.T) {
	r := startUp(t, t.TempDir(), "--crds", filepath.Join("crdcheck", "testdata", "good.yaml"))
	apply := func(document string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "object.yaml")
		if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
		r.mustKubectl("apply", "-f", file)
	}
	apply("apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: owner}\nspec: {name: x}\n")
	uid := r.mustKubectl("get", "thing", "owner", "-o", "jsonpath={.metadata.uid}")
	apply("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: owned\n  ownerReferences:\n" +
		"  - {apiVersion: example.com/v1, kind: Thing, name: owner, uid: " + uid + "}\n")
	r.mustKubectl("delete", "thing", "owner")
	r.mustKubectl("wait", "--for=delete", "configmap/owned", "--timeout=180s")
}
