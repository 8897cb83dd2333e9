"""The time from process start to the first effect (g), after a clean stop and after a crash, with leader election."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime

from benchmarks.figures import Figure, Section
from benchmarks.requests import entries, position
from benchmarks.rig import CPU, Rig, deployment, say

POLL = 0.02
"""Seconds between two reads of the audit log. Its timestamps are measured, so this does not change the figure."""


async def first_effects(rig: Rig, n: int) -> Section:
    """Measure section g: n starts of each component after a stop, and n after a crash."""
    namespace = await rig.namespace()
    figures = []
    for name in rig.suite.components:
        say(f"g. {name}: {n} starts, {n} crashes")
        for crash, label, aim in ((False, "start", 1.0), (True, "start after kill −9", 2.0)):
            taken = [await measure_start(rig, name, namespace, crash=crash) for _ in range(n)]
            figures.append(Figure(f"{name}: {label}", sorted(taken)[n // 2], "s", aim=aim))
    await rig.clear(namespace)
    return Section(
        "g",
        "From process start to the first effect",
        f"Median of {n}. Leader election on, the same identity, as in a restarted container. The first effect is "
        "the first write of the component in the audit log, Leases and Events apart: a provider's registration, the "
        "first status of a ModelDeployment that waits for core or selector.",
        figures,
    )


async def measure_start(rig: Rig, name: str, namespace: str, *, crash: bool) -> float:
    """Restart a component, and return the seconds from its start to the response of its first write."""
    component = rig.suite.components[name]
    if crash:
        component.kill()
    else:
        component.stop()
    # A model that waits gives core and the selector something to write.
    body = deployment(f"waiting-{time.monotonic_ns()}", namespace, CPU)
    await rig.create(body)
    await rig.quiet()
    log = position(rig)
    began = time.time()
    component.start()
    async with asyncio.timeout(60):
        while (written := _first_write(rig, name, log)) is None:  # noqa: ASYNC110
            await asyncio.sleep(POLL)
    component.wait_ready()
    await rig.quiet()
    return written - began


def _first_write(rig: Rig, name: str, log: int) -> float | None:
    """Return the time of the component's first write since a position in the log, Leases and Events apart."""
    for component, entry in entries(rig, log):
        resource = entry.get("objectRef", {}).get("resource")
        is_write = entry["verb"] in ("patch", "create", "update") and resource not in ("leases", "events")
        if component == name and is_write:
            return datetime.fromisoformat(entry["stageTimestamp"]).timestamp()
    return None
