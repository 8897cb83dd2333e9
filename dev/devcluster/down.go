package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// downTimeout is longer than any orderly stop takes.
const downTimeout = 15 * time.Second

func writePID(l layout) error {
	return os.WriteFile(l.pidFile(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
}

func down(args []string, stdout, stderr io.Writer) int {
	var dir string
	set := flag.NewFlagSet("devcluster down", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&dir, "dir", "", "directory that was given to up (needed)")
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return exitUsage
	}
	l, err := newLayout(dir)
	if err == nil && set.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(stderr, "devcluster: %v\n", err)
		return exitUsage
	}
	pid, ok := supervisorOf(l)
	if !ok {
		// Not a failure: what was asked for is so.
		fmt.Fprintf(stderr, "devcluster: none runs over %s\n", l.dir)
		return 0
	}
	if err := stopSupervisor(l, pid); err != nil {
		fmt.Fprintf(stderr, "devcluster: %v\n", err)
		return 1
	}
	fmt.Fprintf(stderr, "devcluster: stopped the one over %s (pid %d)\n", l.dir, pid)
	return 0
}

// supervisorOf finds the supervisor of a directory. The number in the file may
// since have been given to any other process, so that one must look like ours.
func supervisorOf(l layout) (int, bool) {
	raw, err := os.ReadFile(l.pidFile())
	if err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || pid <= 1 {
		return 0, false
	}
	return pid, runsOver(pid, l)
}

// runsOver tells whether a process was started as `… up … --dir DIR`.
func runsOver(pid int, l layout) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	raw, err := os.ReadFile(filepath.Join(proc, "cmdline"))
	if err != nil {
		return false
	}
	cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
	if err != nil {
		return false
	}
	var args []string
	for arg := range bytes.SplitSeq(bytes.TrimRight(raw, "\x00"), []byte{0}) {
		args = append(args, string(arg))
	}
	return isUpOver(args, cwd, l.dir)
}

func isUpOver(args []string, cwd, dir string) bool {
	if len(args) < 2 || args[1] != "up" {
		return false
	}
	for i, arg := range args[2:] {
		name, value, inline := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if name != "dir" || !strings.HasPrefix(arg, "-") {
			continue
		}
		if !inline {
			if i+3 >= len(args) {
				return false
			}
			value = args[i+3]
		}
		if !filepath.IsAbs(value) {
			value = filepath.Join(cwd, value)
		}
		return samePath(value, dir)
	}
	return false
}

// samePath follows links where the paths exist.
func samePath(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// stopSupervisor returns when the process is gone.
func stopSupervisor(l layout, pid int) error {
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	deadline := time.Now().Add(downTimeout)
	for runsOver(pid, l) {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not stop within %s; see its output", pid, downTimeout)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}
