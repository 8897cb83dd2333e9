"""The upstream objects of a burst without our processes (k): the lower bound of the API server's cost in e."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks import processes
from benchmarks.figures import Figure, Section
from benchmarks.rig import MANAGER, UPSTREAM, Rig, run_concurrently, say
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._provider.write import manifest


def applied_objects(rig: Rig) -> list[tuple[Kind, Object]]:
    """Return kind and manifest of each upstream object, as its provider applied it."""
    return [
        (UPSTREAM[provider], record.manifest)
        for provider, sightings in rig.upstream.items()
        for live in sightings.objects.values()
        if (record := manifest.applied(live))
    ]


async def upstream_alone(rig: Rig, objects: Sequence[tuple[Kind, Object]], at_once: int) -> Section:
    """Measure section k on a server without deployments. It stops our processes, so no section may follow."""
    namespace = await rig.namespace()
    n = len(objects)
    say(f"k. the {n} upstream objects alone")
    for component in rig.suite.components.values():
        component.stop()
    watched = processes.control_plane(rig)
    before = {name: processes.cpu_seconds(pid) for name, pid in watched.items()}
    await run_concurrently(
        at_once,
        (rig.client.apply(kind, _without_owner(obj, namespace), manager=MANAGER) for kind, obj in objects),
    )
    await rig.quiet()
    cpu = {name: processes.cpu_seconds(pid) - before[name] for name, pid in watched.items()}
    return Section(
        "k",
        f"The {n:,} upstream objects of e without us",
        "What the providers had rendered, applied by one client while none of our processes ran, until the simulated "
        "operators had brought all of it up. No design of ours could spend less than this in e.",
        [
            Figure("CPU of kube-apiserver", cpu.get("kube-apiserver", 0.0), "s"),
            Figure("CPU of etcd", cpu.get("etcd", 0.0), "s"),
        ],
    )


def _without_owner(applied: Object, namespace: str) -> Object:
    meta = {key: value for key, value in applied["metadata"].items() if key != "ownerReferences"}
    return {**applied, "metadata": {**meta, "namespace": namespace}}
