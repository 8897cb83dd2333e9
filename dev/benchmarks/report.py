"""Sections as a table to read and as JSON."""

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
    """The machine and what ran on it, in a line."""
    when = datetime.now(UTC).date()
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    return f"{when}: {machine}, {plane}."


def markdown(sections: Sequence[Section], on: str) -> str:
    return "\n".join([HEAD, on, *map(section, sections)]) + "\n"


def as_json(sections: Sequence[Section], on: str) -> str:
    document = {"ground": on, "sections": [dataclasses.asdict(section) for section in sections]}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def write(folder: Path, sections: Sequence[Section], on: str) -> None:
    (folder / "benchmarks.md").write_text(markdown(sections, on))
    (folder / "benchmarks.json").write_text(as_json(sections, on))


def section(section: Section) -> str:
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
