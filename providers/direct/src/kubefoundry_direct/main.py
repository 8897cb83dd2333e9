"""Console entry `kubefoundry-provider-direct`."""

from __future__ import annotations

from kubefoundry_direct.provider import NAME, build
from kubefoundry_sdk import run
from kubefoundry_sdk.flags import mirror


def main() -> int:
    """Run the provider until it is stopped; returns the exit code."""
    return run(NAME, build=build, add_arguments=mirror)
