package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// Ports are taken from below those the kernel gives to outgoing connections:
// else one of these could sit on the API server's port just when it restarts.
const (
	lowestPort  = 20000
	highestPort = 29999
	portRange   = "/proc/sys/net/ipv4/ip_local_port_range"
)

// portHolder keeps ports occupied until their component is about to start, so
// that two clusters starting together do not choose the same.
type portHolder struct{ held map[int]net.Listener }

// holdFree takes n free ports.
func holdFree(n int) (*portHolder, []int, error) {
	low, high := candidatePorts()
	holder := &portHolder{held: map[int]net.Listener{}}
	var ports []int
	for _, offset := range rand.Perm(high - low + 1) {
		if len(ports) == n {
			break
		}
		port := low + offset
		if holder.take(port) == nil {
			ports = append(ports, port)
		}
	}
	if len(ports) < n {
		holder.releaseAll()
		return nil, nil, fmt.Errorf("no %d free ports on 127.0.0.1 between %d and %d", n, low, high)
	}
	return holder, ports, nil
}

// holdThese takes the ports of an earlier run.
func holdThese(ports ...int) (*portHolder, error) {
	holder := &portHolder{held: map[int]net.Listener{}}
	for _, port := range ports {
		if err := holder.take(port); err != nil {
			holder.releaseAll()
			return nil, fmt.Errorf("port %d on 127.0.0.1, which this cluster used before, cannot be taken again: %w", port, err)
		}
	}
	return holder, nil
}

func (h *portHolder) take(port int) error {
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		var inner *os.SyscallError
		if errors.As(err, &inner) {
			return inner.Err
		}
		return err
	}
	h.held[port] = listener
	return nil
}

func (h *portHolder) release(port int) {
	if listener, ok := h.held[port]; ok {
		listener.Close()
		delete(h.held, port)
	}
}

func (h *portHolder) releaseAll() {
	for port := range h.held {
		h.release(port)
	}
}

// candidatePorts is the usual range unless this machine gives that one to
// outgoing connections; then any range has the same risk.
func candidatePorts() (low, high int) {
	raw, err := os.ReadFile(portRange)
	if err != nil {
		return lowestPort, highestPort
	}
	return below(string(raw))
}

func below(localRange string) (low, high int) {
	var first, last int
	if n, _ := fmt.Sscan(localRange, &first, &last); n == 2 && first <= highestPort && first-1000 >= 1024 {
		return max(1024, first-10000), first - 1
	}
	return lowestPort, highestPort
}
