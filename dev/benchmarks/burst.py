"""A thousand deployments at once (e). Their memory is section f."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial
from typing import Final

from benchmarks import processes
from benchmarks.figures import Figure, Section, percentile
from benchmarks.requests import Requests, count, position, total
from benchmarks.rig import GPU, Rig, Sightings, deployment, say
from benchmarks.webhook import histogram, histogram_figures

AT_ONCE = 20
"""Concurrent create requests."""

MEANWHILE: Final = "dynamo"
"""The provider that another tenant's model names during the burst."""


async def at_once(rig: Rig, n: int) -> Section:
    """Measure section e. All deployments stay Running for section f."""
    say(f"e. {n} at once")
    namespace = await rig.namespace()
    providers = list(rig.upstream)
    bodies = [
        deployment(f"burst-{index}", namespace, GPU, providers[index % len(providers)]) for index in range(n)
    ]
    expected = Counter(providers[index % len(providers)] for index in range(n)) + Counter([MEANWHILE])
    watched = {**processes.ours(rig), **processes.control_plane(rig)}
    watched["simulated operators"] = rig.suite.simulators[0].pid
    before = {name: processes.cpu_seconds(pid) for name, pid in watched.items()}
    log = position(rig)
    reviews = histogram(rig)
    start = time.perf_counter()
    taken = await rig.create_all(bodies, AT_ONCE)
    created = time.perf_counter()
    alone = await _meanwhile(rig)
    complete = await _complete(rig, expected)
    running = await rig.deployments.until(lambda: len(rig.deployments.running) > n)
    await rig.quiet()
    cpu = {name: processes.cpu_seconds(pid) - before[name] for name, pid in watched.items()}
    requests = count(rig, log)
    own = sum(cpu.get(name, 0.0) for name in rig.suite.components)
    by_component = _work_by_component(requests)
    scale = n / 1000
    return Section(
        "e",
        f"{n:,} at once over three providers",
        f"A third of them names each provider; {AT_ONCE} create requests on their way at a time. CPU seconds until "
        "nothing changed any more. The aims are for 1,000 and scale with the number.",
        [
            Figure("all created", created - start, "s"),
            Figure("a create: p50", percentile(taken, 0.5), "ms"),
            Figure("a create: p99", percentile(taken, 0.99), "ms"),
            *histogram_figures(reviews, histogram(rig)),
            Figure(
                "meanwhile, from a create in another namespace to the upstream object", alone * 1000, "ms"
            ),
            Figure("all upstream objects there", complete - start, "s"),
            Figure("all Running", running - start, "s"),
            Figure(
                "requests a deployment, Events, Leases and heartbeats apart",
                total(requests, "work") / n,
                "",
                aim=9.4,
            ),
            *(Figure(name, number / n, "", detail=True) for name, number in sorted(by_component.items())),
            Figure("Events a deployment", total(requests, "Event") / n, ""),
            Figure("CPU of our processes", own, "s", aim=33 * scale),
            *(Figure(name, cpu[name], "s", detail=True) for name in rig.suite.components),
            Figure("CPU of kube-apiserver", cpu.get("kube-apiserver", 0.0), "s", aim=58 * scale),
            Figure("CPU of etcd", cpu.get("etcd", 0.0), "s"),
            Figure("CPU of the simulated operators", cpu["simulated operators"], "s"),
        ],
    )


async def _complete(rig: Rig, expected: Counter[str]) -> float:
    """Return the time at which each provider has its expected number of upstream objects.

    Each watch reports one kind, and any kind may be the last to be complete.
    """
    return max(
        [
            await sightings.until(partial(_has_objects, sightings, expected[provider]))
            for provider, sightings in rig.upstream.items()
        ]
    )


def _work_by_component(requests: Requests) -> Counter[str]:
    """Return the number of requests of each component, Events, Leases and heartbeats apart."""
    result: Counter[str] = Counter()
    for (component, kind, _, _), number in requests.items():
        if kind == "work":
            result[component] += number
    return result


async def _meanwhile(rig: Rig) -> float:
    """Return the seconds from the create of another tenant's deployment, after the burst, to its upstream object."""
    namespace = await rig.namespace()
    start = time.perf_counter()
    await rig.create(deployment("alone", namespace, GPU, MEANWHILE))
    sightings = rig.upstream[MEANWHILE]
    return await sightings.until(lambda: any(key[0] == namespace for key in sightings.objects)) - start


def _has_objects(sightings: Sightings, number: int) -> bool:
    return len(sightings.objects) >= number
