"""Write sections as Markdown tables and as JSON."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.figures import Figure, Section

HEAD = """# Benchmarks

`make bench` measures all of this in one run and writes this file and `benchmarks.json` beside it. Client, control
plane, simulated upstream operators and our five processes share the machine, so times hold for it alone: compare
ratios within a run. *Aim*: at most. *Go peer*: what the Go implementation of the same design needed, measured on
another machine of two cores against kube-apiserver v1.36.3, by 2026-11-21 (commit b0d3fb7): no more than an order of
magnitude to compare with. Which of the two is faster only a run of both side by side in the same hour can tell.
"""


def ground(plane: str) -> str:
    """Return one line about the date, the machine and the control plane."""
    when = datetime.now(UTC).date()
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    return f"{when}: {machine}, {plane}."


def write(folder: Path, sections: Sequence[Section], ground: str) -> None:
    """Write benchmarks.md and benchmarks.json. `ground` is the line about the machine."""
    document = {"ground": ground, "sections": [dataclasses.asdict(section) for section in sections]}
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    (folder / "benchmarks.md").write_text("\n".join([HEAD, ground, *map(section, sections)]) + "\n")
    (folder / "benchmarks.json").write_text(text)


def section(section: Section) -> str:
    """Return a section as Markdown."""
    rows = [
        "| figure | measured | aim | aim met | Go peer, another machine and day |",
        "|---|---:|---:|---|---|",
        *(_row(figure) for figure in section.figures),
    ]
    return "\n".join(["", f"## {section.key}. {section.title}", "", section.method, "", *rows])


def _row(figure: Figure) -> str:
    met = {None: "", True: "yes", False: "no"}[figure.met]
    aim = "" if figure.aim is None else _number(figure.aim, figure.unit)
    return f"| {figure.name} | {_number(figure.value, figure.unit)} | {aim} | {met} | {figure.peer} |"


def _number(value: float, unit: str) -> str:
    digits = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}".strip()
