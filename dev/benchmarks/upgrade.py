"""What another build of the providers, with other default images, does to objects that serve (j)."""

from __future__ import annotations

import time

from benchmarks.figures import Figure, Section
from benchmarks.requests import count, itemised, position, total
from benchmarks.rig import GPU, UPSTREAM, Rig, deployment, say
from kubefoundry_local.suite import Component
from kubefoundry_sdk.runtime.store import Key

IMAGES: tuple[str, str] = ("example.com/engine:2.54.0", "example.com/engine:2.55.0")
"""The default image before and after; tags that every provider can read a version from."""


async def upgraded(rig: Rig, n: int) -> Section:
    """Section j: n that are Running, and each provider started again with another default image."""
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
    stood = _upstream(rig, namespace)
    start, began = position(rig), time.perf_counter()
    _restart(components, new)
    # Turns are taken in order: when a later one runs, all have had theirs.
    await rig.run_all([deployment(f"later-{provider}", namespace, GPU, provider) for provider in providers])
    taken = time.perf_counter() - began
    requests = count(rig, start)
    stands = {key: mark for key, mark in _upstream(rig, namespace).items() if key in stood}
    writes = sum(
        number
        for (_, _, verb, resource), number in requests.items()
        if verb in ("create", "patch", "update", "delete") and resource in _plurals()
    )
    later = len(providers)
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
            Figure("writes to upstream objects", writes - later, "", aim=0),
            Figure(
                "upstream objects with another uid or generation",
                len(stood.items() - stands.items()),
                "",
                aim=0,
            ),
            Figure("until all were looked at", taken, "s"),
            Figure("requests with the later ones, Events apart", total(requests, "work"), ""),
            *itemised(requests, 1, "", "work"),
        ],
    )


def _restart(components: list[Component], image: str) -> None:
    for component in components:
        component.stop()
        component.environment = {**component.environment, "KUBEFOUNDRY_DEFAULT_IMAGE": f"vllm={image}"}
        component.start()
    for component in components:
        component.wait_ready()


def _upstream(rig: Rig, namespace: str) -> dict[tuple[str, Key], tuple[str, int]]:
    """Uid and generation of each upstream object."""
    return {
        (provider, key): (obj["metadata"]["uid"], obj["metadata"]["generation"])
        for provider, seen in rig.upstream.items()
        for key, obj in seen.objects.items()
        if key[0] == namespace
    }


def _plurals() -> set[str]:
    return {kind.plural for kind in UPSTREAM.values()}
