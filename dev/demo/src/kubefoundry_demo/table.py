"""A table of ModelDeployments that is updated in place. Without a terminal, each change is a line."""

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
from kubefoundry_sdk._api.kinds import Object

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
    """Return the columns of a ModelDeployment, with `-` for fields that the status does not report yet."""
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
    """Yield a function that shows ModelDeployments. Lines count seconds from `started`, a time.monotonic()."""
    if not console.is_terminal:
        yield lines(started)
        return
    with Live(console=console, auto_refresh=False) as live:
        yield lambda deployments: live.update(table(deployments), refresh=True)


def table(deployments: Sequence[Object]) -> Table:
    """Return the table of ModelDeployments, sorted by name."""
    result = Table(box=None, pad_edge=False, expand=True)
    for title in ("NAME", "PROVIDER", "PHASE", "READY", "ENDPOINT"):
        result.add_column(title, no_wrap=True)
    result.add_column("MESSAGE", no_wrap=True, overflow="ellipsis", ratio=1)
    for entry in sorted(map(row, deployments), key=lambda entry: entry.name):
        phase = Text(entry.phase, style=COLORS.get(entry.phase, ""))
        # As Text, so that brackets are not markup.
        result.add_row(entry.name, entry.provider, phase, entry.ready, entry.endpoint, Text(entry.message))
    return result


def lines(started: float) -> Show:
    """Return a function that prints each ModelDeployment that has a phase and has changed since the last call."""
    shown: dict[str, Row] = {}

    def show(deployments: Sequence[Object]) -> None:
        for entry in map(row, deployments):
            if entry.phase == "-" or shown.get(entry.name) == entry:
                continue
            shown[entry.name] = entry
            print(
                f"{time.monotonic() - started:6.1f} s  {entry.name:<12} {entry.provider:<7} {entry.phase:<9} "
                f"{entry.ready:<5} {entry.endpoint:<26} {entry.message}",
                flush=True,
            )

    return show
