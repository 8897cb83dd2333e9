"""Console entry `kubefoundry-provider-direct`."""

from __future__ import annotations

from kubefoundry_direct.provider import NAME, build
from kubefoundry_direct.settings import add_arguments
from kubefoundry_sdk import run


def main() -> int:
    """Run the provider until it is stopped; returns the exit code."""
    return run(NAME, build=build, add_arguments=add_arguments)
