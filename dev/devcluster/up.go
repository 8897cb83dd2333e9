package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	layout         layout
	allControllers bool
	scheduler      bool
	keepData       bool
	auditLevel     string
	data           string
	crds           []string
	timeout        time.Duration
}

func parseUp(args []string, stderr io.Writer) (options, error) {
	var o options
	var dir string
	set := flag.NewFlagSet("devcluster up", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&dir, "dir", "", "directory for data, certificates, kubeconfig, logs; made if missing (needed)")
	set.BoolVar(&o.allControllers, "all-controllers", false, "run all controllers that kube-controller-manager runs by default, not only "+controllerList(false))
	set.BoolVar(&o.scheduler, "scheduler", false, "run kube-scheduler")
	set.BoolVar(&o.keepData, "keep-data", false, "go on with the data, certificates and ports of an earlier run over the same directory")
	set.StringVar(&o.data, "data", "", "start with a copy of etcd's data in this directory, which an earlier cluster left")
	set.StringVar(&o.auditLevel, "audit-level", "Metadata", "level of the audit log: "+strings.Join(auditLevels, ", "))
	set.Func("crds", "file or directory of CustomResourceDefinitions to apply before the controllers start; may be given several times", func(path string) error {
		files, err := definitionFiles(path)
		o.crds = append(o.crds, files...)
		return err
	})
	set.DurationVar(&o.timeout, "timeout", 2*time.Minute, "give up when it is not ready by then")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if !slices.Contains(auditLevels, o.auditLevel) {
		return o, fmt.Errorf("--audit-level %q is not one of %s", o.auditLevel, strings.Join(auditLevels, ", "))
	}
	var err error
	o.layout, err = newLayout(dir)
	return o, err
}

// definitionFiles lists what to apply for one --crds. A kustomization file says
// how to use the others and is nothing the server could take.
func definitionFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		ending := filepath.Ext(entry.Name())
		if entry.IsDir() || (ending != ".yaml" && ending != ".yml" && ending != ".json") ||
			strings.HasPrefix(entry.Name(), "kustomization.") {
			continue
		}
		files = append(files, filepath.Join(path, entry.Name()))
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no YAML or JSON files in %s", path)
	}
	return files, nil
}

// up runs a control plane until it is asked to stop, and returns the exit code.
func up(args []string, stdout, stderr io.Writer) int {
	say := func(format string, a ...any) { fmt.Fprintf(stderr, "devcluster: "+format+"\n", a...) }
	o, err := parseUp(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		say("%v", err)
		return exitUsage
	}

	// Before anything is started: what comes in the meantime must not be lost.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR2, parentSignal)
	// A reader that closed our output must not end us by a signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	parent, err := watchParent()
	if err != nil {
		say("watching the parent process: %v", err)
		return 1
	}

	c, err := prepareCluster(o, say, func(event map[string]any) error {
		return json.NewEncoder(stdout).Encode(event)
	})
	if err != nil {
		say("%v", err)
		return 1
	}
	defer c.close()
	return c.supervise(signals, parent)
}

// prepareCluster does all that can fail before the first process starts.
func prepareCluster(o options, say func(string, ...any), emit func(map[string]any) error) (*cluster, error) {
	l := o.layout
	c := &cluster{
		options: o, layout: l, say: say, emit: emit,
		programs: map[string]string{},
		exits:    make(chan *process, 8), running: map[string]*process{},
	}
	if err := c.findPrograms(); err != nil {
		return nil, err
	}
	if err := l.refuseForeign(); err != nil {
		return nil, err
	}
	lock, err := l.lock()
	if err != nil {
		return nil, err
	}
	c.lock = lock
	if err := c.prepareDirectory(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *cluster) findPrograms() error {
	needed := []string{etcdName, apiServerName, managerName}
	if c.options.scheduler {
		needed = append(needed, schedulerName)
	}
	if len(c.options.crds) > 0 {
		needed = append(needed, kubectlName)
	}
	for _, name := range needed {
		program, err := findProgram(name)
		if name == managerName && errors.Is(err, errNoProgram) {
			c.say("WARNING: %v", err)
			c.say("WARNING: no garbage collection, no deletion of namespaces, no default ServiceAccounts in this cluster")
			continue
		}
		if err != nil {
			return err
		}
		c.programs[name] = program
	}
	return nil
}

func (c *cluster) prepareDirectory() error {
	l := c.layout
	var found bool
	var err error
	if c.options.keepData {
		if c.state, found, err = l.readState(); err != nil {
			return err
		}
	}
	if found {
		c.ports, err = holdThese(c.state.APIServerPort, c.state.EtcdPort)
	} else {
		var free []int
		if c.ports, free, err = holdFree(2); err == nil {
			c.state = state{APIServerPort: free[0], EtcdPort: free[1]}
		}
	}
	if err != nil {
		return err
	}
	if err := l.prepare(c.options.keepData, c.state); err != nil {
		return err
	}
	if c.options.data != "" && !found {
		// Whole files: a cluster that was stopped wrote them.
		if err := os.CopyFS(l.etcdData(), os.DirFS(c.options.data)); err != nil {
			return fmt.Errorf("--data: %w", err)
		}
	}
	if err := ensurePKI(l); err != nil {
		return err
	}
	server := apiServerURL(c.state)
	return errors.Join(
		writeKubeconfig(l, l.kubeconfig(), server, "admin"),
		writeKubeconfig(l, l.ownKubeconfig(managerName), server, managerName),
		writeKubeconfig(l, l.ownKubeconfig(schedulerName), server, schedulerName),
		writeAuditPolicy(l, c.options.auditLevel),
		makeAuditLog(l),
		writePID(l),
	)
}
