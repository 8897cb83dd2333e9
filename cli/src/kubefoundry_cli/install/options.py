"""Options that installing commands share."""

from __future__ import annotations

import click

REGISTRY = click.option(
    "--registry", metavar="PREFIX", help="Where the images are, for example registry.example.com/kubefoundry."
)
WAIT = click.option(
    "--wait", type=float, metavar="SECONDS", help="Wait until the processes are up, at most so long."
)
FORCE = click.option(
    "--force-conflicts", "force", is_flag=True, help="Take over values that others have set."
)
dry_run = click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
