package main

import (
	"context"
	"errors"
	"os"
	"syscall"
)

type operation func(context.Context) error

// supervise starts the cluster and then does what signals and ending processes
// ask for, one operation at a time, until one of them is a reason to stop. It
// returns the exit code.
func (c *cluster) supervise(signals <-chan os.Signal, parent *parentWatch) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	finished := make(chan error, 1)
	begin := func(op operation) { go func() { finished <- op(ctx) }() }
	busy := true
	var queue []operation
	begin(c.start)

	code, stopping := 0, false
	for !stopping {
		select {
		case err := <-finished:
			busy = false
			if err != nil {
				// If a process ended, that is the reason and this only follows.
				if !c.reportDeath() {
					c.say("%v", err)
				}
				code, stopping = 1, true
			}
		case p := <-c.exits:
			if !p.expected.Load() {
				c.say("%s", p.obituary())
				code, stopping = 1, true
			}
		case sig := <-signals:
			switch sig {
			case syscall.SIGTERM, syscall.SIGINT:
				c.say("stopping: %v", sig)
				stopping = true
			case syscall.SIGHUP:
				queue = append(queue, c.restartAPIServer)
			case syscall.SIGUSR2:
				queue = append(queue, c.pauseAPIServer)
			case parentSignal:
				stopping = c.orphaned(parent)
			}
		case <-parent.ticks.C:
			stopping = c.orphaned(parent)
		}
		if !stopping && !busy && len(queue) > 0 {
			busy = true
			begin(queue[0])
			queue = queue[1:]
		}
	}

	cancel()
	go func() {
		for sig := range signals {
			if sig == syscall.SIGTERM || sig == syscall.SIGINT {
				c.say("killing: %v again", sig)
				c.killAll()
			}
		}
	}()
	if busy {
		<-finished
	}
	c.stopAll()
	if err := os.Remove(c.layout.pidFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		c.say("%v", err)
	}
	c.say("stopped")
	return code
}

func (c *cluster) orphaned(parent *parentWatch) bool {
	if parent.gone() {
		c.say("stopping: the parent process %d is gone", parent.pid)
		return true
	}
	return false
}

// reportDeath looks for a process that ended by itself and has not been told of.
func (c *cluster) reportDeath() bool {
	for {
		select {
		case p := <-c.exits:
			if !p.expected.Load() {
				c.say("%s", p.obituary())
				return true
			}
		default:
			return false
		}
	}
}
