"""Console entry `kubefoundry-provider-kaito`."""

from __future__ import annotations

from kubefoundry_kaito.provider import NAME, build
from kubefoundry_kaito.settings import add_arguments
from kubefoundry_sdk import run


def main() -> int:
    """Runs the provider until it is asked to stop; the exit code."""
    return run(NAME, build=build, add_arguments=add_arguments)
