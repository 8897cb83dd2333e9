"""`python -m benchmarks [--only a,c] [--n 20]`: measures, prints, and writes docs/benchmarks.md after a whole run."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from benchmarks import (
    alone,
    burst,
    direct,
    drift,
    latency,
    memory,
    report,
    requests,
    startup,
    upgrade,
    webhook,
)
from benchmarks.figures import Section
from benchmarks.rig import Rig, rig
from kubefoundry_local.control_plane import ROOT, CannotRun

COUNTS: Final = {
    "h": 500,
    "a": 100,
    "b": 30,
    "c": 40,
    "g": 5,
    "i": 60,
    "j": 100,
    "d": 100,
    "e": 1000,
    "f": 1000,
    "k": 1000,
}
"""Sections in the order in which they are measured, and how often: `--n` bounds that."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", help="sections, separated by commas; prints, writes no file")
    parser.add_argument("--n", type=int, help="at most so many of anything, for a quick look; writes no file")
    chosen = parser.parse_args()
    wanted = set(filter(None, chosen.only.split(","))) or set(COUNTS)
    if unknown := wanted - set(COUNTS):
        parser.error(
            f"there is no section {', '.join(sorted(unknown))}; there are {', '.join(sorted(COUNTS))}"
        )
    if "k" in wanted and "e" not in wanted:
        parser.error("section k measures what e has left: name both")
    counts = {key: min(count, chosen.n or count) for key, count in COUNTS.items() if key in wanted}
    failures: list[str] = []
    try:
        with tempfile.TemporaryDirectory(prefix="kubefoundry-bench-") as folder:
            sections, on = asyncio.run(_measure(Path(folder), counts))
    except* CannotRun as group:
        failures = [str(error) for error in group.exceptions]
    if failures:
        sys.stderr.write(f"bench: {failures[0]}\n")
        return 1
    print(f"\n{on}")
    if wanted == set(COUNTS) and not chosen.n:
        report.write(ROOT / "docs", sections, on)
    return 0


async def _measure(folder: Path, counts: dict[str, int]) -> tuple[list[Section], str]:
    async with rig(folder) as made:
        sections = []
        async for section in _sections(made, counts):
            # at once: what comes later may fail
            print(report.section(section), flush=True)
            sections.append(section)
        return sorted(sections, key=lambda section: section.key), report.ground(made.ground)


async def _sections(made: Rig, counts: dict[str, int]) -> AsyncIterator[Section]:
    imports = memory.imported(made) if "f" in counts else {}
    idle = memory.resident(made) if "f" in counts else {}
    measures = {
        "h": webhook.durations,
        "a": latency.apply_to_upstream,
        "b": requests.of_a_deployment,
        "c": latency.upstream_to_ours,
        "g": startup.first_effects,
        "d": requests.at_rest,
        "i": drift.put_back,
        "j": upgrade.upgraded,
        "e": burst.at_once,
    }
    for key, measure in measures.items():
        if key in counts:
            yield await measure(made, counts[key])
    if "f" in counts:
        full = memory.resident(made) if "e" in counts else {}
        yield memory.section(imports, idle, full, counts.get("e", 0))
    left = alone.rendered(made) if "k" in counts else []
    for namespace in {key[0] for key in made.deployments.objects}:
        await made.clear(namespace)
    async for section in direct.sections(made, counts):
        yield section
    if "k" in counts:
        # last, because it stops our processes
        yield await alone.upstream_alone(made, left, burst.AT_ONCE)


if __name__ == "__main__":
    sys.exit(main())
