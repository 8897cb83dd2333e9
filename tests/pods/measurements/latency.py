"""The latency of one call to the server by the place where its provider does the work."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import aiohttp

from kubefoundry_sdk._api.kinds import Object
from pods.images import provider
from pods.images.provider import ECHO, SHOUT, WHISPER
from pods.llama_stack.distributions import Server, entry, stack
from pods.measurements.rig import NAMESPACE, Rig, deployed, percentile

REMOTE: Final = "acme-remote"
SERVICES: Final[Mapping[str, tuple[str, Object]]] = {
    "socket": (SHOUT, {}),
    "tcp": (WHISPER, {"transport": "TCP"}),
    "own-pods": (f"example.com/{REMOTE}:1", {"mode": "Deployment"}),
}
INLINE: Final = "inline"
WARM: Final = 20
"""Calls of each provider before the measurement."""


def add_images(rig: Rig) -> None:
    """Build the images of the providers."""
    for image in (*provider.examples(rig.work / "examples"), *provider.with_services(rig.work / "served")):
        rig.node.add(image)
    rig.add_services([REMOTE])


async def measure(rig: Rig, calls: int) -> None:
    """Print the latency of this many calls of each provider, which take turns in random order."""
    add_images(rig)
    served = [{**entry(name, image), "service": service} for name, (image, service) in SERVICES.items()]
    providers = {"inference": [entry(INLINE, ECHO), *served]}
    async with rig.client() as api:
        pod = await deployed(api, stack("chat", NAMESPACE, externalProviders=providers))
        times = await call_in_turns(Server.of(pod), [INLINE, *SERVICES], calls)
    print_table(times)


async def call_in_turns(server: Server, names: Sequence[str], calls: int) -> dict[str, list[float]]:
    """Return the milliseconds of each provider's calls. Raises AssertionError if one fails."""
    times: defaultdict[str, list[float]] = defaultdict(list)
    async with aiohttp.ClientSession() as session:
        for number in range(WARM + calls):
            for name in random.sample(names, len(names)):
                milliseconds = await call(session, server, name)
                if number >= WARM:
                    times[name].append(milliseconds)
    return times


async def call(session: aiohttp.ClientSession, server: Server, name: str) -> float:
    """Return the milliseconds of one chat completion. Raises AssertionError if it fails."""
    body = {"model": f"{name}/echo-1", "messages": [{"role": "user", "content": "ping"}]}
    began = time.perf_counter()
    async with session.post(f"{server.url}/v1/chat/completions", json=body) as response:
        text = await response.text()
    assert response.status == 200, text
    return 1000 * (time.perf_counter() - began)


def print_table(times: Mapping[str, Sequence[float]]) -> None:
    """Print median and 95th percentile, and how far both are from those of the provider in the server."""
    base = times[INLINE]
    print("| provider | calls | p50 | p95 | p50 more than inline | ratio of p50 |\n|---|---|---|---|---|---|")
    for name in (INLINE, *SERVICES):
        values = times[name]
        middle, high = percentile(values, 0.5), percentile(values, 0.95)
        more, ratio = middle - percentile(base, 0.5), middle / percentile(base, 0.5)
        print(f"| {name} | {len(values)} | {middle:.1f} ms | {high:.1f} ms | {more:+.1f} ms | {ratio:.2f} |")
