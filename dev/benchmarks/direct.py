"""Sections a, b, c, e, f and i for provider direct, whose upstream kind is Kubernetes' own Deployment.

This process simulates the Deployment controller, as the simulators stand for the other systems. It first reports that
a Deployment's pods start, then that they serve. No pods exist.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from benchmarks import processes
from benchmarks.burst import AT_ONCE
from benchmarks.drift import measure_correction
from benchmarks.figures import Figure, Section, percentile
from benchmarks.latency import bare_write, measure_creation, measure_status_changes
from benchmarks.requests import count, itemised, position, total
from benchmarks.rig import GPU, MANAGER, Rig, Sightings, deployment, say
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._cluster.reflector import reflect
from kubefoundry_sdk._runtime.store import Key, key_of
from kubefoundry_simulators.cluster import connect

NAME: Final = "direct"


class Controller(Sightings):
    """A watch of Deployments that reports the status of each generation once."""

    def __init__(self) -> None:
        super().__init__()
        self.due: asyncio.Queue[Object] = asyncio.Queue()

    def put(self, obj: Object) -> None:
        """Record the Deployment, and queue it if its generation has no status yet."""
        super().put(obj)
        if (obj.get("status") or {}).get("observedGeneration", 0) < obj["metadata"]["generation"]:
            self.due.put_nowait(obj)

    async def work(self, rig: Rig) -> None:
        """Write the status of queued Deployments, one after another, until cancelled."""
        while True:
            obj = await self.due.get()
            meta, replicas = obj["metadata"], obj["spec"]["replicas"]
            starting = {
                "observedGeneration": meta["generation"],
                "replicas": replicas,
                "updatedReplicas": replicas,
            }
            serving = {**starting, "readyReplicas": replicas, "availableReplicas": replicas}
            for status in (starting, serving):
                try:
                    await self._write(rig, meta, status)
                except ApiError as error:
                    # The Deployment may have been deleted meanwhile.
                    if not error.not_found:
                        raise

    async def _write(self, rig: Rig, meta: Object, status: dict[str, Any]) -> None:
        change = [{"op": "add", "path": "/status", "value": status}]
        await rig.client.json_patch(
            DEPLOYMENTS, f"{meta['name']}/status", meta["namespace"], change, manager=MANAGER
        )


@asynccontextmanager
async def _with_controller(rig: Rig) -> AsyncIterator[Rig]:
    """Run the simulated controller, and yield the rig with a watch of Deployments as its only upstream."""
    controller = Controller()
    direct_rig = replace(rig, upstream={NAME: controller})
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(reflect(rig.client, DEPLOYMENTS, controller)),
            group.create_task(controller.work(direct_rig)),
        ]
        await direct_rig.quiet()
        yield direct_rig
        for task in tasks:
            task.cancel()


async def sections(rig: Rig, counts: dict[str, int]) -> AsyncIterator[Section]:
    """Yield the sections that `counts` names. The burst is last, because memory is measured with its Deployments."""
    async with _with_controller(rig) as direct_rig:
        pid = processes.ours(direct_rig)[NAME]
        idle = processes.resident_megabytes(pid)
        for key, measure in (("a", _create), ("b", _requests), ("c", _status), ("i", _drift)):
            if key in counts:
                yield await measure(direct_rig, counts[key])
        if "e" in counts:
            n = max(1, counts["e"] // 3)
            yield await _burst(direct_rig, n)
            if "f" in counts:
                full = processes.resident_megabytes(pid)
                yield Section(
                    "f",
                    "Resident memory, provider direct",
                    "VmRSS in 10⁶ bytes, before and after the burst of section e for it.",
                    [
                        Figure("direct: before", idle, "MB"),
                        Figure(f"direct: with {n:,}", full, "MB", aim=idle + 8 if n <= 1000 else None),
                    ],
                )


async def _create(rig: Rig, n: int) -> Section:
    say(f"a. direct: {n} one after another")
    namespace = await rig.namespace()
    bare, taken = [], []
    for index in range(n):
        bare.append(await bare_write(rig, namespace, index))
        taken.append(await measure_creation(rig, NAME, deployment(f"named-{index}", namespace, GPU, NAME)))
    median = percentile(taken, 0.5)
    await rig.clear(namespace)
    return Section(
        "a",
        "From create to the Deployment, provider direct",
        f"As section a: {n} one after another, named.",
        [
            Figure("a bare server-side apply of a ConfigMap: p50", percentile(bare, 0.5), "ms"),
            Figure("direct: p50", median, "ms"),
            Figure("direct: p99", percentile(taken, 0.99), "ms"),
            Figure("direct: p50 in bare writes", median / percentile(bare, 0.5), "", aim=6),
        ],
    )


async def _requests(rig: Rig, n: int) -> Section:
    say(f"b. direct: {n} one after another")
    namespace = await rig.namespace()
    start = position(rig)
    for index in range(n):
        await rig.run_all([deployment(f"counted-{index}", namespace, GPU, NAME)])
    requests = count(rig, start)
    await rig.clear(namespace)
    return Section(
        "b",
        "API requests a deployment, provider direct",
        f"As section b: {n} one after another, named.",
        [
            Figure("all but Events, Leases and heartbeats", total(requests, "work") / n, "", aim=8),
            *itemised(requests, n, "work"),
            Figure("Events", total(requests, "Event") / n, ""),
        ],
    )


async def _status(rig: Rig, n: int) -> Section:
    say(f"c. direct: {n} changes")
    namespace = await rig.namespace()
    operator = await connect(rig.suite.plane.kubeconfig)
    try:
        taken = await measure_status_changes(rig, operator, NAME, namespace, n)
    finally:
        await operator.close()
    await rig.clear(namespace)
    return Section(
        "c",
        "From a change of the Deployment's status to ours",
        f"As section c: {n} changes.",
        [
            Figure("direct: p50", percentile(taken, 0.5), "ms"),
            Figure("direct: p99", percentile(taken, 0.99), "ms"),
        ],
    )


async def _drift(rig: Rig, n: int) -> Section:
    say(f"i. direct: {n} values changed, one after another")
    namespace = await rig.namespace()
    names = [f"drifting-{index}" for index in range(n)]
    await rig.run_all([deployment(name, namespace, GPU, NAME) for name in names])
    start = position(rig)
    taken = [await measure_correction(rig, namespace, name, NAME) for name in names]
    requests = count(rig, start)
    await rig.clear(namespace)
    return Section(
        "i",
        "Drift of a Deployment put back",
        f"As section i: {n} owned values changed, each on a Deployment of its own.",
        [
            Figure("p50", percentile(taken, 0.5), "ms"),
            Figure("p99", percentile(taken, 0.99), "ms", aim=1000),
            Figure("requests each, Events apart", total(requests, "work") / n, ""),
            *itemised(requests, n, "work"),
        ],
    )


async def _burst(rig: Rig, n: int) -> Section:
    say(f"e. direct: {n} at once")
    namespace = await rig.namespace()
    bodies = [deployment(f"burst-{index}", namespace, GPU, NAME) for index in range(n)]
    keys: set[Key] = {key_of(body) for body in bodies}
    pid = processes.ours(rig)[NAME]
    before, log, start = processes.cpu_seconds(pid), position(rig), time.perf_counter()
    await rig.create_all(bodies, AT_ONCE)
    sightings = rig.upstream[NAME]
    complete = await sightings.until(lambda: keys <= sightings.objects.keys())
    running = await rig.deployments.until(lambda: keys <= rig.deployments.running)
    await rig.quiet()
    return Section(
        "e",
        f"{n:,} at once on provider direct",
        f"As section e, {AT_ONCE} create requests on their way at a time; its CPU until nothing changed any more.",
        [
            Figure("all Deployments there", complete - start, "s"),
            Figure("all Running", running - start, "s"),
            Figure(
                "requests a deployment, Events, Leases and heartbeats apart",
                total(count(rig, log), "work") / n,
                "",
                aim=9.4,
            ),
            Figure("CPU of provider direct", processes.cpu_seconds(pid) - before, "s"),
        ],
    )
