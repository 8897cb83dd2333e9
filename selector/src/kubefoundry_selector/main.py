"""The process `kubefoundry-selector`: chooses a provider for ModelDeployments that name none."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from kubefoundry_sdk.flags import boolean, flag
from kubefoundry_sdk.selector import Process, SetUp, add_heartbeat_timeout, argument_parser, run_process
from kubefoundry_selector.controller import Controller
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
    return run_process(PROGRAM, *prepared(prepare))


def prepared(
    prepare: Callable[[Process], Choose] | None = None, arguments: Sequence[str] | None = None
) -> tuple[argparse.Namespace, SetUp]:
    """Return the flags and the set-up of a selector's process.

    Args:
        prepare: See `run_selector`.
        arguments: The arguments; None for those of the process.
    """
    parser = argument_parser(PROGRAM, "Chooses a provider for ModelDeployments that name none.")
    add_heartbeat_timeout(parser)
    flag(
        parser,
        "--check-provider-use",
        "choose only providers that the creator of a model may use; needs manifests/provider-policy: true or false",
        default=False,
        read=boolean,
        nargs="?",
        const=True,
    )

    def set_up(running: Process) -> None:
        if prepare is None:
            Controller(running)
            return
        choose = prepare(running)
        inputs = running.stores
        controller = Controller(running, by(choose))
        for store in inputs:
            controller.follow(store)

    return parser.parse_args(arguments), set_up
