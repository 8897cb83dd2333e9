"""From process start to the first effect (g), after a clean stop and after a crash, with election on."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime

from benchmarks.figures import Figure, Section
from benchmarks.requests import entries, position
from benchmarks.rig import CPU, Rig, deployment, say

POLL = 0.02
"""Seconds between two looks at the audit log: its own times are what counts."""


async def first_effects(rig: Rig, n: int) -> Section:
    """Section g: every component n times each way."""
    namespace = await rig.namespace()
    figures = []
    for name in rig.suite.components:
        say(f"g. {name}: {n} starts, {n} crashes")
        for crash, label, aim, peer in (
            (False, "start", 1.0, "0.3–0.4"),
            (True, "start after kill −9", 2.0, "15–19"),
        ):
            taken = [await _start(rig, name, namespace, crash) for _ in range(n)]
            figures.append(Figure(f"{name}: {label}", sorted(taken)[n // 2], "s", aim=aim, peer=peer))
    await rig.clear(namespace)
    return Section(
        "g",
        "From process start to the first effect",
        f"Median of {n}. Leader election on, the same identity, as in a restarted container. The first effect is "
        "the first write of the component in the audit log, Leases and Events apart: a provider's registration, the "
        "first status of a ModelDeployment that waits for core or selector.",
        figures,
    )


async def _start(rig: Rig, name: str, namespace: str, crash: bool) -> float:
    """Seconds from the start of the process to the answer of its first write."""
    component = rig.suite.components[name]
    if crash:
        component.kill()
    else:
        component.stop()
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
    for component, entry in entries(rig, log):
        resource = entry.get("objectRef", {}).get("resource")
        if (
            component == name
            and entry["verb"] in ("patch", "create", "update")
            and resource
            not in (
                "leases",
                "events",
            )
        ):
            return datetime.fromisoformat(entry["stageTimestamp"]).timestamp()
    return None
