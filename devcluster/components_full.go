//go:build !assets

package main

import (
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var _ = etcdmain.Main
var _ = cli.Run
var _ = kubectl.NewDefaultKubectlCommand
var _ = apiserver.NewAPIServerCommand
var _ = controllermanager.NewControllerManagerCommand
var _ = scheduler.NewSchedulerCommand
