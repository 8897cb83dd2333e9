"""A further command to give, with the options that say where: without them it would be about another cluster."""

from __future__ import annotations

import shlex
from typing import Final

import click

WHERE: Final = {"namespace": "-n", "context": "--context", "kubeconfig": "--kubeconfig"}


def hint(command: str) -> str:
    """`kubefoundry status m -n team-a`: with the options of the command that runs now."""
    context = click.get_current_context(silent=True)
    given = context.params if context else {}
    everywhere = command.endswith(" -A")
    options = [
        f" {option} {shlex.quote(str(given[name]))}"
        for name, option in WHERE.items()
        if given.get(name) and not (everywhere and name == "namespace")
    ]
    return f"kubefoundry {command}{''.join(options)}"
