package main

import (
	"net"
	"strconv"
	"strings"
	"testing"
)

func canListen(port int) bool {
	listener, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	listener.Close()
	return true
}

func TestPortsAreHeldUntilReleased(t *testing.T) {
	holder, ports, err := holdFree(2)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.releaseAll()
	if len(ports) != 2 || ports[0] == ports[1] {
		t.Fatalf("got %v", ports)
	}
	for _, port := range ports {
		if canListen(port) {
			t.Errorf("port %d is not held", port)
		}
	}
	holder.release(ports[0])
	holder.release(ports[0]) // a restart releases again
	if !canListen(ports[0]) || canListen(ports[1]) {
		t.Error("the wrong one was released")
	}
}

func TestPortsOfEarlierRun(t *testing.T) {
	holder, ports, err := holdFree(2)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.releaseAll()
	holder.release(ports[0])
	_, err = holdThese(ports...)
	if err == nil || !strings.Contains(err.Error(), strconv.Itoa(ports[1])) || !strings.Contains(err.Error(), "in use") {
		t.Fatalf("a taken port: %v", err)
	}
	if !canListen(ports[0]) {
		t.Error("the free one was not given back after the failure")
	}
	holder.releaseAll()
	again, err := holdThese(ports...)
	if err != nil {
		t.Fatal(err)
	}
	again.releaseAll()
}

func TestPortsStayBelowOutgoingOnes(t *testing.T) {
	for text, want := range map[string][2]int{
		"32768\t60999\n": {lowestPort, highestPort},
		"15000 60999":    {5000, 14999},
		"10240 65535":    {1024, 10239},
		"1024 65535":     {lowestPort, highestPort},
		"":               {lowestPort, highestPort},
	} {
		low, high := below(text)
		if low != want[0] || high != want[1] {
			t.Errorf("%q: %d to %d", text, low, high)
		}
	}
}
