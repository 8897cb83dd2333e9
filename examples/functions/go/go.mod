module example.com/kubefoundry-provider-widgets

go 1.22
