"""Start time and memory of a pod by the number of its sidecars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kubefoundry_llamastack.names import MERGE
from kubefoundry_nodes.kubelet import memory
from kubefoundry_sdk._api.kinds import Object
from pods.images import provider
from pods.images.provider import ECHO
from pods.llama_stack.distributions import entry, stack
from pods.measurements.rig import NAMESPACE, Rig, began, created, deployed, ended, ready, removed, states


async def measure(rig: Rig, counts: Sequence[int]) -> None:
    """Print how long the sidecars of a pod start, one after another, and what their processes use."""
    for image in provider.examples(rig.work / "examples"):
        rig.node.add(image)
    names = [f"acme-side-{number}" for number in range(max(counts))]
    if names:
        rig.add_services(names)
    print("| sidecars | their start | all of the pod's start | memory of the sidecars | of the whole pod |")
    print("|---|---|---|---|---|", flush=True)
    async with rig.client() as api:
        for count in counts:
            cr = cr_with(names[:count])
            pod = await deployed(api, cr)
            print(row(rig, pod, count), flush=True)
            await removed(api, pod, cr)


def cr_with(names: Sequence[str]) -> Object:
    """Return a CR with a provider in the server, and with these, each with a sidecar."""
    served = [{**entry(name, f"example.com/{name}:1"), "service": {}} for name in names]
    providers = {"inference": [entry("echo", ECHO), *served]}
    return stack(f"side-{len(names)}", NAMESPACE, externalProviders=providers)


def row(rig: Rig, pod: Object, count: int) -> str:
    """Return a row of the table. Kubernetes has its times in whole seconds."""
    found = states(pod)
    server = began(found["llama-stack"])
    waited = (server - ended(found[MERGE])).total_seconds()
    processes = [*processes_of(rig.folder(pod))]
    sidecars = sum(memory.used(process) for process in processes if is_service(process))
    total = sum(map(memory.used, processes))
    whole = (ready(pod) - created(pod)).total_seconds()
    return (
        f"| {count} | {waited:.0f} s | {whole:.0f} s | {sidecars / 2**20:.0f} MiB | {total / 2**20:.0f} MiB |"
    )


def processes_of(folder: Path) -> Iterator[Path]:
    """Yield the processes in the network namespace of a pod, as folders of /proc."""
    network = (folder / "network").stat().st_ino
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "ns" / "net").stat().st_ino == network:
                yield process
        except OSError:
            continue


def is_service(process: Path) -> bool:
    """Check whether a process belongs to a service of a provider."""
    try:
        return b"LLS_PROVIDER_ID=" in (process / "environ").read_bytes()
    except OSError:
        return False
