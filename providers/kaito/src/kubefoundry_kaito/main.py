"""Console entry `kubefoundry-provider-kaito`."""

from __future__ import annotations

from argparse import Namespace

from kubefoundry_kaito import settings
from kubefoundry_kaito.provider import NAME, build
from kubefoundry_sdk.provider import shim
from kubefoundry_sdk.provider.contract import Provider


def main() -> int:
    """Runs the shim until it is told to stop; the exit code."""
    return shim.run(NAME, build=_from_arguments, add_arguments=settings.add_arguments)


def _from_arguments(arguments: Namespace) -> Provider:
    return build(settings.from_arguments(arguments))
