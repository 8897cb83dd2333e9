// The components of the oldest Kubernetes that is supported, in one program: it is the component by whose name it is
// called. `build oldest` lays a link for each name beside it, so that the folder can be KUBEBUILDER_ASSETS.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.etcd.io/etcd/server/v3/wal"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics on /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// As in the program of the newest Kubernetes.
func init() { wal.SegmentSizeBytes = 4 << 20 }

var components = map[string]func(args []string) int{
	"etcd": func(args []string) int {
		etcdmain.Main(args)
		return 0
	},
	"kube-apiserver": func([]string) int {
		return cli.Run(apiserver.NewAPIServerCommand())
	},
	"kube-controller-manager": func([]string) int {
		return cli.Run(controllermanager.NewControllerManagerCommand())
	},
	"kube-scheduler": func([]string) int {
		return cli.Run(scheduler.NewSchedulerCommand())
	},
	"kubectl": func([]string) int {
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
		return 0
	},
}

func main() {
	run, ok := components[filepath.Base(os.Args[0])]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s is not one of etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl\n", os.Args[0])
		os.Exit(2)
	}
	os.Exit(run(os.Args))
}
