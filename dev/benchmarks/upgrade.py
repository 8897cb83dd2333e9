"""The effect of an upgrade of the providers, with other default images, on serving objects (j)."""

from __future__ import annotations

import time
from typing import Final

from benchmarks.figures import Figure, Section
from benchmarks.requests import Requests, count, itemised, position, total
from benchmarks.rig import GPU, UPSTREAM, Rig, deployment, say
from kubefoundry_local.suite import Component
from kubefoundry_sdk._runtime.store import Key

PLURALS: Final = frozenset(kind.plural for kind in UPSTREAM.values())

IMAGES: tuple[str, str] = ("example.com/engine:2.54.0", "example.com/engine:2.55.0")
"""The default image before and after. Every provider can read a version from these tags."""


async def restart_with_new_images(rig: Rig, n: int) -> Section:
    """Measure section j: restart each provider with another default image while n deployments are Running."""
    say(f"j. upgrade of the providers over {n}")
    components = [rig.suite.components[provider] for provider in UPSTREAM]
    before = [component.environment for component in components]
    old, new = IMAGES
    _restart(components, old)
    namespace = await rig.namespace()
    providers = list(UPSTREAM)
    await rig.run_all(
        [deployment(f"serving-{index}", namespace, GPU, providers[index % 3]) for index in range(n)]
    )
    states = _upstream_states(rig, namespace)
    start, began = position(rig), time.perf_counter()
    _restart(components, new)
    # A provider takes its objects in order: once a later deployment runs, it has reconciled all earlier ones.
    await rig.run_all([deployment(f"later-{provider}", namespace, GPU, provider) for provider in providers])
    taken = time.perf_counter() - began
    requests = count(rig, start)
    after = _upstream_states(rig, namespace)
    await rig.clear(namespace)
    for component, environment in zip(components, before, strict=True):
        component.stop()
        component.environment = environment
        component.start()
        component.wait_ready()
    return Section(
        "j",
        f"Upgrade of the providers over {n} that serve",
        f"{n} Running over the three providers, then each restarted with another default image, and one more "
        "deployment a provider made: when that is Running, the new one has looked at all. Requests: the audit log's "
        "of our ServiceAccounts; of the writes those for the later ones are taken off.",
        [
            Figure("writes to upstream objects", _upstream_writes(requests) - len(providers), "", aim=0),
            Figure(
                "upstream objects with another uid or generation",
                len(states.items() - after.items()),
                "",
                aim=0,
            ),
            Figure("until all were looked at", taken, "s"),
            Figure("requests with the later ones, Events apart", total(requests, "work"), ""),
            *itemised(requests, 1, "work"),
        ],
    )


def _restart(components: list[Component], image: str) -> None:
    for component in components:
        component.stop()
        component.environment = {**component.environment, "KUBEFOUNDRY_DEFAULT_IMAGE": f"vllm={image}"}
        component.start()
    for component in components:
        component.wait_ready()


def _upstream_writes(requests: Requests) -> int:
    """Return the number of requests that wrote an upstream object."""
    return sum(
        number
        for (_, _, verb, resource), number in requests.items()
        if verb in ("create", "patch", "update", "delete") and resource in PLURALS
    )


def _upstream_states(rig: Rig, namespace: str) -> dict[tuple[str, Key], tuple[str, int]]:
    """Return uid and generation of each upstream object."""
    return {
        (provider, key): (obj["metadata"]["uid"], obj["metadata"]["generation"])
        for provider, sightings in rig.upstream.items()
        for key, obj in sightings.objects.items()
        if key[0] == namespace
    }
