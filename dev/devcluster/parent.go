package main

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// parentSignal is what the kernel wakes the supervisor with.
const parentSignal = syscall.SIGUSR1

const parentPoll = 500 * time.Millisecond

// parentWatch notices the end of the process that started the supervisor. The
// kernel's signal also comes when only the starting thread of that process
// ends, which a test runner's worker thread may do; so it is a reason to look,
// and the parent's pid decides. Looking now and then covers a parent that died
// before the signal was asked for.
type parentWatch struct {
	pid   int
	ticks *time.Ticker
}

func watchParent() (*parentWatch, error) {
	w := &parentWatch{pid: os.Getppid(), ticks: time.NewTicker(parentPoll)}
	// The setting belongs to a thread: it must be one that does not end.
	err := onSpawnThread(func() error {
		return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(parentSignal), 0, 0, 0)
	})
	return w, err
}

func (w *parentWatch) gone() bool { return os.Getppid() != w.pid }
