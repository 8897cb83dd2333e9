"""Options that installing commands share."""

from __future__ import annotations

import click

from kubefoundry_cli.failure import Exit, Failure

REGISTRY = click.option(
    "--registry", metavar="PREFIX", help="Where the images are, for example registry.example.com/kubefoundry."
)
WAIT = click.option(
    "--wait", type=float, metavar="SECONDS", help="Wait until the processes are up, at most so long."
)
FORCE = click.option(
    "--force-conflicts", "force", is_flag=True, help="Take over values that others have set."
)
EJECT = click.option(
    "--eject", is_flag=True, help="Keep the models running unmanaged: kubefoundry eject of each."
)
dry_run = click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")


def one_of(eject: bool, delete_models: bool) -> None:
    """Raises Failure where both are asked for."""
    if eject and delete_models:
        raise Failure("--eject keeps the models, --delete-models deletes them: choose one", Exit.USAGE)
