"""The edits of a tenant while another one creates and deletes hundreds of models (l)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import cycle
from typing import Final

from benchmarks.burst import AT_ONCE
from benchmarks.figures import Figure, Section, percentile
from benchmarks.latency import bare_write
from benchmarks.rig import GPU, MANAGER, QUIET, Rig, deployment, run_concurrently, say
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._runtime.store import Key

PROVIDER: Final = "dynamo"
"""The provider of the edited model. It changes replicas in place."""

AT_REST: Final = 40
"""Edits while nothing else happens."""

REPLICAS: Final = (2, 1)
"""The values of the edits, in turn."""


async def edits_beside_a_crowd(rig: Rig, n: int) -> Section:
    """Measure section l: edits at rest, and while another tenant creates and deletes n models."""
    say(f"l. edits of one tenant, {n} models of another")
    namespace, crowded = await rig.namespace(), await rig.namespace()
    key = (namespace, "edited")
    await rig.run_all([deployment(key[1], namespace, GPU, PROVIDER)])
    at_rest, bare_at_rest = await _measure_edits(rig, key, lambda edits: edits < AT_REST, rig.quiet)
    crowd = asyncio.create_task(_create_and_delete(rig, crowded, n))
    beside, bare_beside = await _measure_edits(rig, key, lambda _: not crowd.done(), _short_pause)
    await crowd
    await rig.clear(namespace)
    idle, busy = percentile(at_rest, 0.5), percentile(beside, 0.5)
    bare_idle, bare_busy = percentile(bare_at_rest, 0.5), percentile(bare_beside, 0.5)
    return Section(
        "l",
        f"An edit beside {n} models of another tenant",
        f"A tenant scales a model, {AT_REST} times at rest, and then every {QUIET} s as long as another tenant "
        f"creates and deletes {n} models over three providers, {AT_ONCE} requests at a time. From just before the "
        "edit is sent to the moment at which a watch shows it in the upstream object. A bare write was measured "
        "before each.",
        [
            Figure("at rest: p50", idle, "ms"),
            Figure("at rest, a bare write: p50", bare_idle, "ms"),
            Figure("meanwhile: p50", busy, "ms"),
            Figure("meanwhile: p99", percentile(beside, 0.99), "ms"),
            Figure("meanwhile, a bare write: p50", bare_busy, "ms"),
            Figure("meanwhile: edits", len(beside), "", detail=True),
            Figure("p50 meanwhile in p50 at rest", busy / idle, "", aim=2),
            Figure("the same ratio of bare writes", bare_busy / bare_idle, ""),
        ],
    )


async def _measure_edits(
    rig: Rig, key: Key, goes_on: Callable[[int], bool], pause: Callable[[], Awaitable[None]]
) -> tuple[list[float], list[float]]:
    """Edit the model while `goes_on` is true of the number of edits.

    Returns:
        The milliseconds of each edit, and of each bare write.
    """
    edits: list[float] = []
    bare: list[float] = []
    for replicas in cycle(REPLICAS):
        if not goes_on(len(edits)):
            break
        bare.append(await bare_write(rig, key[0], time.perf_counter_ns()))
        edits.append(await measure_edit(rig, key, replicas))
        await pause()
    return edits, bare


async def _short_pause() -> None:
    """Wait as long as `Rig.quiet` waits at least: the other tenant leaves no moment without a change."""
    await asyncio.sleep(QUIET)


async def measure_edit(rig: Rig, key: Key, replicas: int) -> float:
    """Scale the model, and return the milliseconds until the upstream object has the new value."""
    change = [{"op": "add", "path": "/spec/scaling", "value": {"replicas": replicas}}]
    sightings = rig.upstream[PROVIDER]
    start = time.perf_counter()
    await rig.client.json_patch(MODEL_DEPLOYMENTS, key[1], key[0], change, manager=MANAGER)
    shown = await sightings.until(
        lambda: sightings.objects[key]["spec"]["services"]["VllmWorker"]["replicas"] == replicas
    )
    return (shown - start) * 1000


async def _create_and_delete(rig: Rig, namespace: str, n: int) -> None:
    """Create n models, delete each of them, and wait until all are gone."""
    providers = list(rig.upstream)
    bodies = [
        deployment(f"crowd-{index}", namespace, GPU, providers[index % len(providers)]) for index in range(n)
    ]
    await rig.create_all(bodies, AT_ONCE)

    async def delete(name: str) -> None:
        live = await rig.client.get(MODEL_DEPLOYMENTS, name, namespace)
        await rig.client.delete(MODEL_DEPLOYMENTS, name, namespace, uid=live["metadata"]["uid"])

    await run_concurrently(AT_ONCE, (delete(body["metadata"]["name"]) for body in bodies))
    for sightings in (rig.deployments, *rig.upstream.values()):
        await sightings.until(lambda: all(key[0] != namespace for key in sightings.objects))  # noqa: B023
