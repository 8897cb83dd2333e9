"""`python -m benchmarks [--only a,c] [--n 20]`: measure and print; a whole run writes docs/benchmarks.md."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Set
from pathlib import Path
from typing import Final

from benchmarks import (
    alone,
    burst,
    direct,
    drift,
    fairness,
    growth,
    latency,
    memory,
    report,
    requests,
    startup,
    upgrade,
    webhook,
)
from benchmarks.figures import Section
from benchmarks.rig import Rig, start_rig
from kubefoundry_local.control_plane import ROOT, CannotRun

COUNTS: Final = {
    "h": 500,
    "a": 100,
    "b": 30,
    "c": 40,
    "g": 5,
    "i": 60,
    "j": 100,
    "l": 500,
    "m": 10_000,
    "d": 100,
    "e": 1000,
    "f": 1000,
    "k": 1000,
}
"""Number of measurements of each section, in the order of measurement. `--n` bounds the numbers."""

BY_NAME: Final = frozenset({"m"})
"""Sections that a run without `--only` leaves out, because they take half an hour."""


def main() -> int:
    """Run the command line, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", help="sections, separated by commas; writes no file")
    parser.add_argument("--n", type=int, help="upper bound of all numbers, for a quick look; writes no file")
    parser.add_argument(
        "--in-kopf", action="store_true", help="run each component in a kopf operator; writes no file"
    )
    arguments = parser.parse_args()
    keys: Set[str] = set(filter(None, arguments.only.split(","))) or COUNTS.keys() - BY_NAME
    if problem := _problem_of(keys):
        parser.error(problem)
    counts = _counts(keys, arguments.n)
    failures: list[str] = []
    try:
        with tempfile.TemporaryDirectory(prefix="kubefoundry-bench-") as folder:
            sections, ground = asyncio.run(_measure(Path(folder), counts, arguments.in_kopf))
    except* CannotRun as group:
        failures = [str(error) for error in group.exceptions]
    if failures:
        sys.stderr.write(f"bench: {failures[0]}\n")
        return 1
    print(f"\n{ground}")
    if keys == COUNTS.keys() - BY_NAME and not arguments.n and not arguments.in_kopf:
        report.write(ROOT / "docs", sections, ground)
    return 0


def _problem_of(keys: Set[str]) -> str:
    """Return why these sections cannot be measured; empty if they can."""
    if unknown := keys - set(COUNTS):
        return f"there is no section {', '.join(sorted(unknown))}; there are {', '.join(sorted(COUNTS))}"
    return "section k needs the objects of section e: name both" if "k" in keys and "e" not in keys else ""


def _counts(keys: Set[str], bound: int | None) -> dict[str, int]:
    """Return the number of measurements of each of these sections, in the order of measurement."""
    return {key: min(count, bound or count) for key, count in COUNTS.items() if key in keys}


async def _measure(folder: Path, counts: dict[str, int], in_kopf: bool) -> tuple[list[Section], str]:
    """Return the sections and the description of the machine."""
    async with start_rig(folder, in_kopf=in_kopf) as rig:
        sections = []
        async for section in _sections(rig, counts):
            # A later section may fail, so each is printed as soon as it is measured.
            print(report.section(section), flush=True)
            sections.append(section)
        return sorted(sections, key=lambda section: section.key), report.ground(rig.ground)


async def _sections(rig: Rig, counts: dict[str, int]) -> AsyncIterator[Section]:
    """Yield each section that `counts` names."""
    imports = memory.imported(rig) if "f" in counts else {}
    idle = memory.resident(rig) if "f" in counts else {}
    async for section in _sections_under_load(rig, counts):
        yield section
    if "f" in counts:
        full = memory.resident(rig) if "e" in counts else {}
        yield memory.section(imports, idle, full, counts.get("e", 0))
    # Section k applies the objects of section e again, so they are read before they are deleted.
    upstream_objects = alone.applied_objects(rig) if "k" in counts else []
    await _clear(rig)
    async for section in direct.sections(rig, counts):
        yield section
    if "k" in counts:
        # The last section, because it stops our processes.
        yield await alone.upstream_alone(rig, upstream_objects, burst.AT_ONCE)


async def _clear(rig: Rig) -> None:
    """Delete the models of all namespaces."""
    for namespace in {key[0] for key in rig.deployments.objects}:
        await rig.clear(namespace)


async def _sections_under_load(rig: Rig, counts: dict[str, int]) -> AsyncIterator[Section]:
    """Yield each section with models of its own. Those of section e, the last, stay."""
    measures = {
        "h": webhook.durations,
        "a": latency.apply_to_upstream,
        "b": requests.per_deployment,
        "c": latency.upstream_to_ours,
        "g": startup.first_effects,
        "d": requests.at_rest,
        "i": drift.put_back,
        "j": upgrade.restart_with_new_images,
        "l": fairness.edits_beside_a_crowd,
        "m": growth.with_many_models,
        "e": burst.at_once,
    }
    for key, measure in measures.items():
        if key in counts:
            yield await measure(rig, counts[key])


if __name__ == "__main__":
    sys.exit(main())
