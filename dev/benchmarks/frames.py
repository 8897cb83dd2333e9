"""`PYTHONPATH=dev python -m benchmarks.frames`: our processes, and the same components in kopf operators.

Measures latency, a burst and memory of one frame after the other, each on a control plane of its own, and writes
docs/frames.md.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks import burst, latency, memory, report
from benchmarks.figures import Figure, Section
from benchmarks.rig import say, start_rig
from kubefoundry_local.control_plane import ROOT, CannotRun

FRAMES: Final = ("processes", "kopf")
COUNTS: Final = {"a": 30, "c": 20, "e": 1000}
"""Number of measurements of each section of docs/benchmarks.md. Section f measures the models of section e."""

HEAD: Final = """# Our processes and kopf as frame

Core, the selector and the four providers as processes of their own (`processes`), and each of them in a kopf operator
of its own (`kopf run -m kubefoundry_NAME.kopf`): the same watches, reconciles and writes
([kopf.md](kopf.md#run-our-components-in-kopf)). One frame after the other on one machine, with simulated upstream
operators, so compare the columns only. Made by `PYTHONPATH=dev python -m benchmarks.frames`;
`--n` bounds the numbers.
"""


def main() -> int:
    """Measure both frames, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frames", description=__doc__)
    parser.add_argument("--n", type=int, default=max(COUNTS.values()), help="upper bound of all numbers")
    counts = {key: min(count, parser.parse_args().n) for key, count in COUNTS.items()}
    measured, failures = [], list[str]()
    try:
        measured = [asyncio.run(_measure(frame, counts)) for frame in FRAMES]
    except* CannotRun as group:
        failures = [str(error) for error in group.exceptions]
    if failures:
        print(f"bench: {failures[0]}", file=sys.stderr)
        return 1
    text = _document([sections for sections, _ in measured], measured[0][1])
    print(text)
    (ROOT / "docs" / "frames.md").write_text(text, encoding="utf-8")
    return 0


async def _measure(frame: str, counts: Mapping[str, int]) -> tuple[list[Section], str]:
    """Return the sections of a frame, and the description of the machine."""
    say(f"frame: {frame}")
    with tempfile.TemporaryDirectory(prefix="kubefoundry-bench-") as folder:
        async with start_rig(Path(folder), in_kopf=frame == "kopf") as rig:
            imports, idle = memory.imported(rig), memory.resident(rig)
            sections = [
                await latency.apply_to_upstream(rig, counts["a"]),
                await latency.upstream_to_ours(rig, counts["c"]),
                await burst.at_once(rig, counts["e"]),
            ]
            full = memory.resident(rig)
            return [*sections, memory.section(imports, idle, full, counts["e"])], report.ground(rig.ground)


def _document(frames: Sequence[Sequence[Section]], ground: str) -> str:
    """Return the document: a table for each section, with a column for each frame."""
    return "\n".join([HEAD, ground, *(_section(list(pair)) for pair in zip(*frames, strict=True))]) + "\n"


def _section(frames: Sequence[Section]) -> str:
    """Return a section's table, without the details of its figures."""
    rows = [f"| figure | {' | '.join(FRAMES)} |", f"|---|{'---:|' * len(FRAMES)}"]
    for figures in zip(*(_shown(section) for section in frames), strict=True):
        cells = [report.number(figure.value, figure.unit) for figure in figures]
        rows.append(f"| {figures[0].name} | {' | '.join(cells)} |")
    return "\n".join(["", f"## {frames[0].title}", "", frames[0].method, "", *rows])


def _shown(section: Section) -> list[Figure]:
    return [figure for figure in section.figures if not figure.detail]


if __name__ == "__main__":
    sys.exit(main())
