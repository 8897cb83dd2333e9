"""The process `kubefoundry-selector`: chooses a provider for ModelDeployments that name none."""

from __future__ import annotations

import sys

from kubefoundry_sdk.runtime import options
from kubefoundry_sdk.runtime.process import Process, run
from kubefoundry_selector.controller import Controller

PROGRAM = "kubefoundry-selector"


def main() -> None:
    """Console script."""
    parser = options.parser(PROGRAM, "Chooses a provider for ModelDeployments that name none.")
    options.heartbeat_timeout(parser)
    sys.exit(run(PROGRAM, parser.parse_args(), set_up))


def set_up(process: Process) -> None:
    """Wires the controller to the process."""
    Controller(process)
