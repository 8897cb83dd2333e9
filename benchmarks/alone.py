"""The upstream objects of a burst without us (k): what of section e's cost of the API server is not ours to save."""

from __future__ import annotations

from benchmarks import processes
from benchmarks.figures import Figure, Section
from benchmarks.rig import MANAGER, UPSTREAM, Rig, at_a_time, say
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.write import manifest


async def upstream_alone(rig: Rig, at_once: int) -> Section:
    """Section k; to be measured last, and after e: it deletes what that left, and ends our processes."""
    namespace = await rig.namespace()
    rendered = [
        (UPSTREAM[provider], obj)
        for provider, seen in rig.upstream.items()
        for live in seen.objects.values()
        if (obj := _as_rendered(live, namespace))
    ]
    n = len(rendered)
    say(f"k. the {n} upstream objects alone")
    for left in {key[0] for key in rig.deployments.objects}:
        await rig.clear(left)
    for component in rig.suite.components.values():
        component.stop()
    watched = processes.control_plane(rig)
    before = {name: processes.cpu_seconds(pid) for name, pid in watched.items()}
    await at_a_time(at_once, (rig.client.apply(kind, obj, manager=MANAGER) for kind, obj in rendered))
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


def _as_rendered(live: Object, namespace: str) -> Object | None:
    """The object as its provider applied it, in that namespace and without its owner."""
    record = manifest.applied(live)
    if record is None:
        return None
    meta = {key: value for key, value in record.manifest["metadata"].items() if key != "ownerReferences"}
    return {**record.manifest, "metadata": {**meta, "namespace": namespace}}
