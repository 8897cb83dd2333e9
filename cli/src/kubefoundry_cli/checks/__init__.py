"""Check an installation and its models, for `kubefoundry doctor`."""
