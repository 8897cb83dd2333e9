"""What `support.timing.recorder` wrote, as Markdown tables: `python -m support.timing.table FILE...`"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROWS: Final = 25
"""The rest of a table is one row."""


@dataclass(slots=True)
class Spent:
    """Seconds of some things that were done."""

    number: int = 0
    wall: float = 0.0
    cpu: float = 0.0

    def add(self, number: int, wall: float, cpu: float) -> None:
        self.number += number
        self.wall += wall
        self.cpu += cpu


def entries(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())


def table(title: str, spent: dict[str, Spent]) -> list[str]:
    """Markdown, what took longest first. Waiting is what neither core of the machine was used for."""
    lines = [
        f"| {title} | number | wall s | CPU s | waiting s |",
        "|---|---:|---:|---:|---:|",
    ]
    ordered = sorted(spent.items(), key=lambda item: -item[1].wall)
    shown, rest = ordered[:ROWS], Spent()
    for _, one in ordered[ROWS:]:
        rest.add(one.number, one.wall, one.cpu)
    total = Spent()
    for _, one in ordered:
        total.add(one.number, one.wall, one.cpu)
    for name, one in [*shown, *([("the others", rest)] if rest.number else []), ("**all**", total)]:
        waiting = max(0.0, one.wall - one.cpu)
        lines.append(f"| {name} | {one.number} | {one.wall:.1f} | {one.cpu:.1f} | {waiting:.1f} |")
    return lines


def main(files: Iterable[Path]) -> None:
    modules: dict[str, Spent] = {}
    fixtures: dict[str, Spent] = {}
    for entry in entries(files):
        if "fixture" in entry:
            one = fixtures.setdefault(f"{entry['fixture']} ({entry['scope']})", Spent())
        else:
            one = modules.setdefault(entry["test"].split("::")[0], Spent())
        one.add(1, entry["wall"], entry["cpu"])
    print(*table("module", modules), "", *table("fixture", fixtures), sep="\n")


if __name__ == "__main__":
    main(map(Path, sys.argv[1:]))
