"""The time until drift of an upstream value is corrected, and the requests that it takes (i)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.figures import Figure, Section, percentile
from benchmarks.requests import count, itemised, position, total
from benchmarks.rig import GPU, KINDS, MANAGER, UPSTREAM, Rig, deployment, say
from kubefoundry_sdk._api.kinds import Object


@dataclass(frozen=True, slots=True)
class Edit:
    """An owned value: its path, and another value that the upstream accepts."""

    path: tuple[str, ...]
    value: Any

    def read(self, obj: Object | None) -> Any:
        """Return the value of an object, or None if a part of the path is missing."""
        value: Any = obj
        for name in self.path:
            value = (value or {}).get(name)
        return value


EDITS: Final = {
    "kaito": Edit(("resource", "count"), 7),
    "dynamo": Edit(("spec", "services", "VllmWorker", "replicas"), 5),
    "kuberay": Edit(("spec", "serveConfigV2"), "applications: []"),
    "direct": Edit(("spec", "progressDeadlineSeconds"), 77),
}


async def put_back(rig: Rig, n: int) -> Section:
    """Measure section i. Each edit has an object of its own, because corrections of an object are rate-limited."""
    say(f"i. {n} values changed, one after another")
    namespace = await rig.namespace()
    providers = list(UPSTREAM)
    names = [f"drifting-{index}" for index in range(n)]
    await rig.run_all(
        [deployment(name, namespace, GPU, providers[index % 3]) for index, name in enumerate(names)]
    )
    start = position(rig)
    taken = [
        await measure_correction(rig, namespace, name, providers[index % 3])
        for index, name in enumerate(names)
    ]
    requests = count(rig, start)
    await rig.clear(namespace)
    return Section(
        "i",
        "Drift put back",
        f"{n} owned values changed, one after another over the providers, each on an object of its own and when "
        "nothing went on; from the answer to the change to the moment at which a watch shows the old value again. "
        "Requests: the audit log's of our ServiceAccounts until all was at rest, divided by that number.",
        [
            Figure("p50", percentile(taken, 0.5), "ms"),
            Figure("p99", percentile(taken, 0.99), "ms", aim=1000),
            Figure("requests each, Events apart", total(requests, "work") / n, ""),
            *itemised(requests, n, "work"),
            Figure("Events each", total(requests, "Event") / n, ""),
        ],
    )


async def measure_correction(rig: Rig, namespace: str, name: str, provider: str) -> float:
    """Edit an upstream object, wait until nothing changes any more, and return the milliseconds of the correction."""
    edit, sightings, key = EDITS[provider], rig.upstream[provider], (namespace, name)
    original = edit.read(sightings.objects[key])
    pointer = "/" + "/".join(edit.path)
    change = [{"op": "replace", "path": pointer, "value": edit.value}]
    version = sightings.objects[key]["metadata"]["resourceVersion"]
    await rig.client.json_patch(KINDS[provider], name, namespace, change, manager=MANAGER)
    changed = time.perf_counter()
    # The watch may still show the object before the edit, which has the original value, too.
    restored = await sightings.until(
        lambda: (
            sightings.objects[key]["metadata"]["resourceVersion"] != version
            and edit.read(sightings.objects[key]) == original
        )
    )
    await rig.quiet()
    return (restored - changed) * 1000
