"""The process `kubefoundry-selector`: chooses a provider for ModelDeployments that name none."""

from __future__ import annotations

import sys
from collections.abc import Callable

from prometheus_client import REGISTRY

from kubefoundry_sdk.selector import Process, add_heartbeat_timeout, argument_parser, run_process
from kubefoundry_selector.controller import SELECTIONS, Controller
from kubefoundry_selector.select import Choose, by

PROGRAM = "kubefoundry-selector"


def main() -> None:
    """Run the console script."""
    sys.exit(run_selector())


def run_selector(prepare: Callable[[Process], Choose] | None = None) -> int:
    """Run a selector, and return the exit code. Provides all but the choice: Lease, kept selections, messages.

    Args:
        prepare: Receives the process, watches the objects that the choice needs, and returns the choice; None for the
            rules of the InferenceProviderConfigs. Models that wait are decided again when a watched object changes.
    """
    parser = argument_parser(PROGRAM, "Chooses a provider for ModelDeployments that name none.")
    add_heartbeat_timeout(parser)

    def set_up(running: Process) -> None:
        REGISTRY.register(SELECTIONS)
        if prepare is None:
            Controller(running)
            return
        choose = prepare(running)
        inputs = running.stores
        controller = Controller(running, by(choose))
        for store in inputs:
            controller.follow(store)

    return run_process(PROGRAM, parser.parse_args(), set_up)
