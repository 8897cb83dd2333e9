"""Show the decisions of the controllers by calling their own functions: the command line `kubefoundry`."""
