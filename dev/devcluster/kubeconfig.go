package main

import (
	"encoding/json"
	"os"
)

// kubeconfig holds certificates inline, so that the file can be copied
// anywhere by itself. It is written as JSON, which every reader of YAML takes,
// and which needs no library in the build without components.
type kubeconfig struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	Clusters       []namedCluster `json:"clusters"`
	Users          []namedUser    `json:"users"`
	Contexts       []namedContext `json:"contexts"`
	CurrentContext string         `json:"current-context"`
}

type namedCluster struct {
	Name    string `json:"name"`
	Cluster struct {
		Server string `json:"server"`
		CA     []byte `json:"certificate-authority-data"`
	} `json:"cluster"`
}

type namedUser struct {
	Name string `json:"name"`
	User struct {
		Cert []byte `json:"client-certificate-data"`
		Key  []byte `json:"client-key-data"`
	} `json:"user"`
}

type namedContext struct {
	Name    string `json:"name"`
	Context struct {
		Cluster string `json:"cluster"`
		User    string `json:"user"`
	} `json:"context"`
}

// writeKubeconfig writes to path the means to reach server as the holder of
// the client certificate called name.
func writeKubeconfig(l layout, path, server, name string) error {
	var cluster namedCluster
	var user namedUser
	var context namedContext
	var err error
	if cluster.Cluster.CA, err = os.ReadFile(l.pki("ca.crt")); err != nil {
		return err
	}
	if user.User.Cert, err = os.ReadFile(l.pki(name + ".crt")); err != nil {
		return err
	}
	if user.User.Key, err = os.ReadFile(l.pki(name + ".key")); err != nil {
		return err
	}
	cluster.Name, cluster.Cluster.Server = "devcluster", server
	user.Name = name
	context.Name, context.Context.Cluster, context.Context.User = "devcluster", "devcluster", name

	raw, err := json.MarshalIndent(kubeconfig{
		APIVersion: "v1", Kind: "Config",
		Clusters: []namedCluster{cluster}, Users: []namedUser{user},
		Contexts: []namedContext{context}, CurrentContext: context.Name,
	}, "", "  ")
	if err != nil {
		return err
	}
	// A rename, so that nobody reads half of it while a restart rewrites it.
	temporary := path + ".new"
	if err := os.WriteFile(temporary, append(raw, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
