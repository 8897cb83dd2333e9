"""The process `kubefoundry-provider-kuberay`."""

from __future__ import annotations

from kubefoundry_kuberay.provider import NAME, build
from kubefoundry_kuberay.settings import add_arguments
from kubefoundry_sdk import run


def main() -> int:
    """Run the provider until it is stopped, and return its exit status."""
    return run(NAME, build=build, add_arguments=add_arguments)
