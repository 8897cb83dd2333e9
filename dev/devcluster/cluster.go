package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

// How long each is given to end by itself; in all less than five seconds. The
// data are safe at any moment. The API server would wait a minute for clients to
// close their watches, long after it has answered all other requests.
const (
	managerGrace   = 1 * time.Second
	apiServerGrace = 1 * time.Second
	etcdGrace      = 1 * time.Second
)

// cluster is one control plane: what it was started with and what runs.
type cluster struct {
	options  options
	layout   layout
	state    state
	ports    *portHolder
	programs map[string]string
	lock     *os.File

	say  func(format string, a ...any)    // progress, for people
	emit func(event map[string]any) error // one line of JSON, for programs

	exits   chan *process
	mutex   sync.Mutex
	running map[string]*process
}

func (c *cluster) close() {
	if c.ports != nil {
		c.ports.releaseAll()
	}
	if c.lock != nil {
		c.lock.Close()
	}
}

// launch starts one component; its port is freed at the last moment.
func (c *cluster) launch(name string, port int, flags []string) error {
	c.ports.release(port)
	p, err := startProcess(name, c.programs[name], c.layout.log(name), flags, c.exits)
	if err != nil {
		return err
	}
	c.mutex.Lock()
	c.running[name] = p
	c.mutex.Unlock()
	c.say("started %s (pid %d)", name, p.cmd.Process.Pid)
	return nil
}

func (c *cluster) get(name string) *process {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.running[name]
}

// start brings everything up and tells so.
func (c *cluster) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.timeout)
	defer cancel()
	begin := time.Now()
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	if err := c.applyCRDs(ctx); err != nil {
		return err
	}
	if err := c.startControllers(ctx); err != nil {
		return err
	}
	c.say("ready after %.1f s: export KUBECONFIG=%s", time.Since(begin).Seconds(), c.layout.kubeconfig())
	return c.emit(c.readyEvent())
}

func (c *cluster) startEtcd(ctx context.Context) error {
	if err := c.launch(etcdName, c.state.EtcdPort, etcdFlags(c.layout, c.state)); err != nil {
		return err
	}
	probe, err := newProber(c.layout, "etcd-ca", "etcd-client")
	if err != nil {
		return err
	}
	return c.explain(etcdName, probe.wait(ctx, etcdURL(c.state)+"/health"))
}

func (c *cluster) startAPIServer(ctx context.Context) error {
	if err := c.launch(apiServerName, c.state.APIServerPort, apiServerFlags(c.layout, c.state)); err != nil {
		return err
	}
	return c.explain(apiServerName, c.waitFor(ctx, "/readyz"))
}

// applyCRDs comes before the controllers: the garbage collector looks for new
// kinds every 30 seconds only, and at its start.
func (c *cluster) applyCRDs(ctx context.Context) error {
	if len(c.options.crds) == 0 {
		return nil
	}
	apply := []string{"apply", "--server-side", "--kubeconfig=" + c.layout.kubeconfig()}
	for _, path := range c.options.crds {
		apply = append(apply, "--filename="+path)
	}
	if err := c.runKubectl(ctx, apply); err != nil {
		return err
	}
	wait := []string{"wait", "crd", "--all", "--for=condition=Established",
		"--timeout=60s", "--kubeconfig=" + c.layout.kubeconfig()}
	for {
		// It fails at once on a definition that has no conditions at all yet.
		err := c.runKubectl(ctx, wait)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(probeEvery):
		}
	}
}

func (c *cluster) runKubectl(ctx context.Context, args []string) error {
	exits := make(chan *process, 1)
	p, err := startProcess(kubectlName, c.programs[kubectlName], c.layout.log(kubectlName), args, exits)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		p.kill()
		return ctx.Err()
	case <-p.done:
	}
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("kubectl %s failed (%s); the end of %s:\n%s", args[0], p.cmd.ProcessState, p.logPath, tail(p.logPath, 15))
	}
	return nil
}

func (c *cluster) startControllers(ctx context.Context) error {
	if c.programs[schedulerName] != "" {
		if err := c.launch(schedulerName, 0, schedulerFlags(c.layout)); err != nil {
			return err
		}
	}
	if c.programs[managerName] == "" {
		return nil
	}
	if err := c.forgetControllers(ctx); err != nil {
		return err
	}
	if err := c.launch(managerName, 0, managerFlags(c.layout, controllerList(c.options.allControllers))); err != nil {
		return err
	}
	// They work when what they make in every namespace is there.
	for _, path := range madeInEachNamespace {
		if err := c.waitFor(ctx, path); err != nil {
			return c.explain(managerName, err)
		}
	}
	return nil
}

var madeInEachNamespace = []string{
	"/api/v1/namespaces/default/serviceaccounts/default",
	"/api/v1/namespaces/default/configmaps/kube-root-ca.crt",
}

// forgetControllers deletes what the controllers of the copied data have made:
// it would look as if ours worked already.
func (c *cluster) forgetControllers(ctx context.Context) error {
	if c.options.data == "" {
		return nil
	}
	admin, err := newProber(c.layout, "ca", "admin")
	if err != nil {
		return err
	}
	for _, path := range madeInEachNamespace {
		if err := admin.ask(ctx, http.MethodDelete, apiServerURL(c.state)+path); err != nil {
			return fmt.Errorf("the data of %s: %w", c.options.data, err)
		}
	}
	return nil
}

func (c *cluster) waitFor(ctx context.Context, path string) error {
	probe, err := newProber(c.layout, "ca", "admin")
	if err != nil {
		return err
	}
	return probe.wait(ctx, apiServerURL(c.state)+path)
}

// explain adds what the component wrote last to an error of waiting for it.
func (c *cluster) explain(name string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	path := c.layout.log(name)
	return fmt.Errorf("%s is not ready: %w; the end of %s:\n%s", name, err, path, tail(path, 15))
}

// restartAPIServer is what SIGHUP asks for.
func (c *cluster) restartAPIServer(ctx context.Context) error {
	if err := c.stopAPIServer(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.timeout)
	defer cancel()
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	return c.emit(map[string]any{"event": "apiserver-ready", "server": apiServerURL(c.state), "pids": c.pids()})
}

// pauseAPIServer is what SIGUSR2 asks for: an outage that lasts until SIGHUP.
func (c *cluster) pauseAPIServer(ctx context.Context) error {
	if err := c.stopAPIServer(ctx); err != nil {
		return err
	}
	return c.emit(map[string]any{"event": "apiserver-stopped", "server": apiServerURL(c.state), "pids": c.pids()})
}

func (c *cluster) stopAPIServer(context.Context) error {
	if p := c.get(apiServerName); p != nil {
		c.say("stopping %s", apiServerName)
		p.stop(apiServerGrace)
		c.forget(apiServerName)
	}
	return nil
}

func (c *cluster) forget(name string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.running, name)
}

func (c *cluster) pids() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	pids := map[string]int{}
	for name, p := range c.running {
		pids[name] = p.cmd.Process.Pid
	}
	return pids
}

func (c *cluster) readyEvent() map[string]any {
	event := map[string]any{
		"event":      "ready",
		"kubeconfig": c.layout.kubeconfig(),
		"auditLog":   c.layout.auditLog(),
		"server":     apiServerURL(c.state),
		"caFile":     c.layout.pki("ca.crt"),
		"logs":       c.layout.logs(),
		"pid":        os.Getpid(),
		"pids":       c.pids(),
	}
	// How to run the kubectl that belongs to this server, where there is one.
	if program, err := findProgram(kubectlName); err == nil {
		if os.Getenv(assetsVariable) == "" {
			event["kubectl"] = []string{program, kubectlName}
		} else {
			event["kubectl"] = []string{program}
		}
	}
	return event
}

// stopAll ends what runs, each before what it needs.
func (c *cluster) stopAll() {
	for _, step := range []struct {
		grace time.Duration
		names []string
	}{
		{managerGrace, []string{schedulerName, managerName}},
		{apiServerGrace, []string{apiServerName}},
		{etcdGrace, []string{etcdName}},
	} {
		var group sync.WaitGroup
		for _, name := range step.names {
			if p := c.get(name); p != nil {
				group.Go(func() { p.stop(step.grace) })
			}
		}
		group.Wait()
	}
}

func (c *cluster) killAll() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, p := range c.running {
		p.expected.Store(true)
		_ = p.cmd.Process.Kill()
	}
}
