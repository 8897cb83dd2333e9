"""A table of ModelDeployments that is updated in place; without a terminal, a line for each change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kubefoundry_cli import health
from kubefoundry_sdk.api.kinds import Object

COLORS: Final = {"Running": "green", "Deploying": "cyan", "Pending": "yellow", "Failed": "red"}

Show = Callable[[Sequence[Object]], None]
"""Called with all ModelDeployments after every change."""


@dataclass(frozen=True, slots=True)
class Row:
    """The columns of a ModelDeployment."""

    name: str
    provider: str
    phase: str
    ready: str
    endpoint: str
    message: str


def row(deployment: Object) -> Row:
    """Its columns; `-` for what the status does not report yet."""
    status = deployment.get("status") or {}
    replicas = status.get("replicas") or {}
    return Row(
        name=deployment["metadata"]["name"],
        provider=(status.get("provider") or {}).get("name") or "-",
        phase=status.get("phase") or "-",
        ready=f"{replicas.get('ready', 0)}/{replicas['desired']}" if "desired" in replicas else "-",
        endpoint=health.endpoint(status) or "-",
        message=status.get("message") or "",
    )


@contextmanager
def display(console: Console, started: float) -> Iterator[Show]:
    """`started`: the time.monotonic() from which the lines count seconds."""
    if not console.is_terminal:
        yield lines(started)
        return
    with Live(console=console, auto_refresh=False) as live:
        yield lambda deployments: live.update(table(deployments), refresh=True)


def table(deployments: Sequence[Object]) -> Table:
    made = Table(box=None, pad_edge=False, expand=True)
    for title in ("NAME", "PROVIDER", "PHASE", "READY", "ENDPOINT"):
        made.add_column(title, no_wrap=True)
    made.add_column("MESSAGE", no_wrap=True, overflow="ellipsis", ratio=1)
    for one in sorted(map(row, deployments), key=lambda one: one.name):
        phase = Text(one.phase, style=COLORS.get(one.phase, ""))
        # As Text, so that brackets are not markup.
        made.add_row(one.name, one.provider, phase, one.ready, one.endpoint, Text(one.message))
    return made


def lines(started: float) -> Show:
    """Prints what has changed since the previous call, from the first phase on."""
    shown: dict[str, Row] = {}

    def show(deployments: Sequence[Object]) -> None:
        for one in map(row, deployments):
            if one.phase == "-" or shown.get(one.name) == one:
                continue
            shown[one.name] = one
            print(
                f"{time.monotonic() - started:6.1f} s  {one.name:<12} {one.provider:<7} {one.phase:<9} "
                f"{one.ready:<5} {one.endpoint:<26} {one.message}",
                flush=True,
            )

    return show
