package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// layout names everything below the directory given with --dir.
type layout struct{ dir string }

func newLayout(dir string) (layout, error) {
	if dir == "" {
		return layout{}, errors.New("--dir is needed")
	}
	abs, err := filepath.Abs(dir)
	return layout{abs}, err
}

func (l layout) path(elem ...string) string {
	return filepath.Join(append([]string{l.dir}, elem...)...)
}

func (l layout) kubeconfig() string     { return l.path("kubeconfig") }
func (l layout) auditLog() string       { return l.path("audit.log") }
func (l layout) auditPolicy() string    { return l.path("audit-policy.json") }
func (l layout) logs() string           { return l.path("logs") }
func (l layout) log(name string) string { return l.path("logs", name+".log") }
func (l layout) pki(name string) string { return l.path("pki", name) }
func (l layout) etcdData() string       { return l.path("etcd") }
func (l layout) pidFile() string        { return l.path("pid") }
func (l layout) lockFile() string       { return l.path("lock") }
func (l layout) stateFile() string      { return l.path("state.json") }
func (l layout) ownKubeconfig(component string) string {
	return l.path("pki", component+".kubeconfig")
}

// state is what a later `up --keep-data` must find again: clients hold the
// address of the API server, so the ports are part of the data.
type state struct {
	APIServerPort int `json:"apiServerPort"`
	EtcdPort      int `json:"etcdPort"`
}

func (l layout) readState() (state, bool, error) {
	var s state
	raw, err := os.ReadFile(l.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return s, false, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err == nil && (s.APIServerPort == 0 || s.EtcdPort == 0) {
		err = errors.New("ports are missing")
	}
	if err != nil {
		return s, false, fmt.Errorf("%s cannot be used: %w", l.stateFile(), err)
	}
	return s, true, nil
}

func (l layout) writeState(s state) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(l.stateFile(), append(raw, '\n'), 0o600)
}

// lock takes the directory for one supervisor. The kernel gives it back when
// the process ends, however it ends, which a pid file alone could not do.
func (l layout) lock() (*os.File, error) {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(l.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("another devcluster runs over %s; stop it with: devcluster down --dir %s", l.dir, l.dir)
	}
	return file, nil
}

// own lists all that `up` makes, and so all that it may delete.
var own = []string{"etcd", "pki", "logs", "kubeconfig", "audit.log", "audit-policy.json", "state.json", "pid"}

// prepare makes the directory ready for a start with the given ports. Without
// keep, the data of an earlier cluster go. The state file comes first: it marks
// the directory as ours even if the start fails half-way.
func (l layout) prepare(keep bool, s state) error {
	if !keep {
		for _, name := range own {
			if err := os.RemoveAll(l.path(name)); err != nil {
				return err
			}
		}
	}
	if err := l.writeState(s); err != nil {
		return err
	}
	for _, dir := range []string{l.path("pki"), l.logs(), l.etcdData()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// refuseForeign fails for a directory with anything in it that no earlier run
// made: deleting below a mistyped --dir could not be undone.
func (l layout) refuseForeign() error {
	if _, err := os.Stat(l.stateFile()); err == nil {
		return nil
	}
	entries, err := os.ReadDir(l.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == filepath.Base(l.lockFile()) {
			continue
		}
		return fmt.Errorf("%s holds %q and no cluster of an earlier run: give an empty or a new directory", l.dir, entry.Name())
	}
	return nil
}
