"""Write sections as Markdown tables."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.figures import Figure, Section

HEAD = """# Benchmarks

`make bench` measures all of this in one run, writes this file, and prints the parts of the sums. Client, control
plane, simulated upstream operators and our five processes share the machine, so times hold for it alone: compare
ratios within a run. *Aim*: at most.
"""


def ground(plane: str) -> str:
    """Return one line about the date, the machine and the control plane."""
    when = datetime.now(UTC).date()
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    return f"{when}: {machine}, {plane}."


def write(folder: Path, sections: Sequence[Section], ground: str) -> None:
    """Write benchmarks.md. `ground` is the line about the machine."""
    text = "\n".join([HEAD, ground, *(section(part, details=False) for part in sections)])
    (folder / "benchmarks.md").write_text(f"{text}\n")


def section(section: Section, details: bool = True) -> str:
    """Return a section as Markdown, with or without the details of its figures."""
    rows = [
        "| figure | measured | aim | aim met |",
        "|---|---:|---:|---|",
        *(_row(figure) for figure in section.figures if details or not figure.detail),
    ]
    return "\n".join(["", f"## {section.key}. {section.title}", "", section.method, "", *rows])


def _row(figure: Figure) -> str:
    met = {None: "", True: "yes", False: "no"}[figure.met]
    aim = "" if figure.aim is None else number(figure.aim, figure.unit)
    name = f"· {figure.name}" if figure.detail else figure.name
    return f"| {name} | {number(figure.value, figure.unit)} | {aim} | {met} |"


def number(value: float, unit: str) -> str:
    """Return a value with its unit, with two or three significant digits."""
    digits = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}".strip()
