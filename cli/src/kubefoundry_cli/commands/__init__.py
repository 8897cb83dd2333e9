"""Implement the commands of `kubefoundry`, one module each."""
