package main

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestDispatch(t *testing.T) {
	for _, c := range []struct {
		argv []string
		name string
		args []string
	}{
		{nil, "", nil},
		{[]string{"/x/devcluster"}, "", nil},
		{[]string{"/x/devcluster", "up", "--dir", "d"}, "up", []string{"up", "--dir", "d"}},
		{[]string{"/x/devcluster", "kubectl", "get", "pods"}, "kubectl", []string{"kubectl", "get", "pods"}},
		{[]string{"/x/kubectl", "get", "pods"}, "kubectl", []string{"kubectl", "get", "pods"}},
		{[]string{"etcd"}, "etcd", []string{"etcd"}},
		{[]string{"/x/kubectl", "up"}, "kubectl", []string{"kubectl", "up"}},
		{[]string{"/x/up", "etcd"}, "etcd", []string{"etcd"}},
	} {
		name, args := dispatch(c.argv)
		if name != c.name || !reflect.DeepEqual(args, c.args) {
			t.Errorf("dispatch(%q) = %q, %q", c.argv, name, args)
		}
	}
}

func TestWrongCommandLines(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"devcluster"}, "usage:"},
		{[]string{"devcluster", "sideways"}, `no command "sideways"`},
		{[]string{"devcluster", "up"}, "--dir is needed"},
		{[]string{"devcluster", "up", "--dir", "d", "x"}, `unexpected argument "x"`},
		{[]string{"devcluster", "up", "--dir", "d", "--audit-level", "All"}, `"All" is not one of`},
		{[]string{"devcluster", "up", "--dir", "d", "--crds", "/nonexistent"}, "/nonexistent"},
		{[]string{"devcluster", "down"}, "--dir is needed"},
	} {
		var out, errs bytes.Buffer
		if code := run(c.argv, &out, &errs); code != exitUsage {
			t.Errorf("%q: exit code %d", c.argv, code)
		}
		if !strings.Contains(errs.String(), c.want) || out.Len() > 0 {
			t.Errorf("%q: printed %q and %q", c.argv, out.String(), errs.String())
		}
	}
}
