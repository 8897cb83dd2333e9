"""The process `kubefoundry-provider-kuberay`."""

from __future__ import annotations

from kubefoundry_kuberay.provider import NAME, build
from kubefoundry_kuberay.settings import add_arguments
from kubefoundry_sdk import run


def main() -> int:
    """Run the provider until SIGTERM or SIGINT, and return the exit code."""
    return run(NAME, build=build, add_arguments=add_arguments)
