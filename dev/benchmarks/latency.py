"""The time from a ModelDeployment to its upstream object (a), and from an upstream status to ours (c)."""

from __future__ import annotations

import time
from functools import partial

from benchmarks.figures import Figure, Section, percentile
from benchmarks.rig import CPU, GPU, KINDS, MANAGER, Rig, deployment, say
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, Object
from kubefoundry_sdk._cluster.requests import path
from kubefoundry_sdk._runtime.store import Key
from kubefoundry_simulators.cluster import JSON_PATCH, Cluster, connect

EXPLICIT = [("kaito", GPU), ("dynamo", GPU), ("kuberay", GPU)]
SELECTED = [("kaito", CPU), ("dynamo", GPU)]
"""Specs without a named provider, with the provider that is selected."""


async def apply_to_upstream(rig: Rig, n: int) -> Section:
    """Measure section a: n creations of each kind, one after another, with a bare write before each."""
    namespace = await rig.namespace()
    bare: list[float] = []
    figures = []
    for label, choices in (("named provider", EXPLICIT), ("selected provider", SELECTED)):
        say(f"a. {label}: {n} one after another")
        taken = []
        for index in range(n):
            provider, spec = choices[index % len(choices)]
            bare.append(await bare_write(rig, namespace, len(bare)))
            named = provider if choices is EXPLICIT else None
            name = f"{'named' if named else 'selected'}-{index}"
            taken.append(await measure_creation(rig, provider, deployment(name, namespace, spec, named)))
        median = percentile(taken, 0.5)
        figures += [
            Figure(f"{label}: p50", median, "ms"),
            Figure(f"{label}: p99", percentile(taken, 0.99), "ms"),
            Figure(f"{label}: p50 in bare writes", median / percentile(bare, 0.5), "", aim=6),
            Figure(f"{label}: p99 in p50", percentile(taken, 0.99) / median, "", aim=2.5),
        ]
    figures.insert(0, Figure("a bare server-side apply of a ConfigMap: p50", percentile(bare, 0.5), "ms"))
    await rig.clear(namespace)
    return Section(
        "a",
        "From create to the upstream object",
        f"{n} of each kind, one after another over the providers, each when the one before was Running and "
        "nothing changed any more; from just before the create request is sent to the moment at which a watch "
        "shows the upstream object. A bare write was measured before each.",
        figures,
    )


async def bare_write(rig: Rig, namespace: str, count: int) -> float:
    """Return the milliseconds of one server-side apply that changes a small ConfigMap."""
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "bare", "namespace": namespace},
        "data": {"count": str(count)},
    }
    start = time.perf_counter()
    await rig.client.apply(CONFIG_MAPS, body, manager=MANAGER)
    return (time.perf_counter() - start) * 1000


async def measure_creation(rig: Rig, provider: str, body: Object) -> float:
    """Create a model, wait until it runs and nothing changes, and return the milliseconds to its upstream object."""
    key: Key = (body["metadata"]["namespace"], body["metadata"]["name"])
    sightings = rig.upstream[provider]
    start = time.perf_counter()
    await rig.create(body)
    await sightings.until(lambda: key in sightings.objects)
    await rig.deployments.until(lambda: key in rig.deployments.running)
    await rig.quiet()
    return (sightings.first_seen[key] - start) * 1000


async def upstream_to_ours(rig: Rig, n: int) -> Section:
    """Measure section c: n changes of an upstream status for each provider."""
    namespace = await rig.namespace()
    figures = []
    operator = await connect(rig.suite.plane.kubeconfig)
    try:
        for provider in rig.upstream:
            say(f"c. {provider}: {n} changes")
            taken = await measure_status_changes(rig, operator, provider, namespace, n)
            figures += [
                Figure(f"{provider}: p50", percentile(taken, 0.5), "ms"),
                Figure(f"{provider}: p99", percentile(taken, 0.99), "ms"),
            ]
    finally:
        await operator.close()
    await rig.clear(namespace)
    return Section(
        "c",
        "From a change of the upstream status to ours",
        f"{n} changes for each provider, one after another: the upstream status is replaced by the first one that "
        "the operator reported, and put back; from just before that request is sent to the moment at which a watch "
        "shows our phase leave, or reach, Running.",
        figures,
    )


async def measure_status_changes(
    rig: Rig, operator: Cluster, provider: str, namespace: str, n: int
) -> list[float]:
    """Change an upstream status n times, and return the milliseconds until the model's phase follows each."""
    key: Key = (namespace, f"observed-{provider}")
    await rig.run_all([deployment(key[1], namespace, GPU, provider)])
    sightings = rig.upstream[provider]
    first, last = sightings.first_status[key], sightings.objects[key]["status"]
    url = path(KINDS[provider], namespace, key[1]) + "/status"
    taken = []
    for index in range(n):
        down = index % 2 == 0
        patch = [{"op": "replace", "path": "/status", "value": first if down else last}]
        start = time.perf_counter()
        await operator.send("PATCH", url, patch, content=JSON_PATCH, manager=MANAGER)
        shown = await rig.deployments.until(partial(_has_phase_running, rig, key, not down))
        taken.append((shown - start) * 1000)
        await rig.quiet()
    return taken


def _has_phase_running(rig: Rig, key: Key, expected: bool) -> bool:
    return (key in rig.deployments.running) == expected
