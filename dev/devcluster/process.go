package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// process is one child. Its output goes to a file, as the supervisor may die
// and nobody would then read a pipe.
type process struct {
	name     string
	logPath  string
	cmd      *exec.Cmd
	done     chan struct{} // closed when it is gone and reaped
	expected atomic.Bool   // set before it is asked to stop
}

// startProcess starts a child and reports its end on exits.
func startProcess(name, program, logPath string, flags []string, exits chan<- *process) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{name: name, logPath: logPath, done: make(chan struct{})}
	p.cmd = exec.Command(program, flags...)
	p.cmd.Args[0] = name // what our own binary looks at
	p.cmd.Env = componentEnvironment(os.Environ())
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = childAttributes()
	if err := onSpawnThread(p.cmd.Start); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // the state is read from ProcessState
		close(p.done)
		exits <- p
	}()
	return p, nil
}

// childAttributes: SIGKILL when the supervisor is gone, so that nothing is
// ever left over; a process group of its own, so that Ctrl-C in a terminal
// reaches only the supervisor, which stops the children in order.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

var spawn struct {
	once sync.Once
	work chan func()
}

// onSpawnThread runs start on one thread that never ends. The kernel sends the
// parent death signal when the thread that forked ends, and the Go runtime ends
// threads as it likes unless a goroutine keeps one locked.
func onSpawnThread(start func() error) error {
	spawn.once.Do(func() {
		spawn.work = make(chan func())
		go func() {
			runtime.LockOSThread()
			for job := range spawn.work {
				job()
			}
		}()
	})
	result := make(chan error, 1)
	spawn.work <- func() { result <- start() }
	return <-result
}

// stop asks, waits for at most grace, then kills.
func (p *process) stop(grace time.Duration) {
	p.expected.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		p.kill()
	}
}

func (p *process) kill() {
	p.expected.Store(true)
	_ = p.cmd.Process.Kill()
	<-p.done
}

// obituary is one line on how it ended and the last lines it wrote.
func (p *process) obituary() string {
	return fmt.Sprintf("%s ended unexpectedly (%s); the end of %s:\n%s",
		p.name, p.cmd.ProcessState, p.logPath, tail(p.logPath, 15))
}

const (
	tailBytes = 16 << 10
	tailWidth = 300 // etcd puts stack traces into one line
)

// tail gives the last lines of a file, indented.
func tail(path string, lines int) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if size, err := file.Seek(0, io.SeekEnd); err == nil {
		_, _ = file.Seek(max(0, size-tailBytes), io.SeekStart)
	}
	raw, err := io.ReadAll(file)
	if err != nil && !errors.Is(err, io.EOF) {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	all = all[max(0, len(all)-lines):]
	for i, line := range all {
		if len(line) > tailWidth {
			all[i] = line[:tailWidth] + "…"
		}
	}
	return "  " + strings.Join(all, "\n  ")
}
