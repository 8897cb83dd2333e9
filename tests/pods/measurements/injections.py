"""Repeated starts of a server with a sidecar: how many succeed, and how soon the sidecar serves."""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk._cluster.client import Client
from pods.images import provider
from pods.images.provider import SHOUT
from pods.llama_stack.distributions import Server, entry, stack
from pods.measurements.rig import NAMESPACE, Rig, began, deployed, removed, states

SECONDS: Final = 5
"""Seconds within which a sidecar has to serve after the start of its container."""


async def measure(rig: Rig, count: int) -> None:
    """Print how many of the starts led to an answer of the provider."""
    for image in provider.with_services(rig.work / "served"):
        rig.node.add(image)
    late: list[float] = []
    answered = 0
    async with rig.client() as api:
        for number in range(count):
            seconds, answer = await inject(api, f"inject-{number}")
            answered += answer == "shout: PING"
            late.append(seconds)
            print(
                f"{number + 1}: the sidecar served after at most {seconds:.0f} s, answer {answer!r}",
                flush=True,
            )
    in_time = sum(seconds <= SECONDS for seconds in late)
    print(
        f"{answered} of {count} injections answered; {in_time} of {count} sidecars served within {SECONDS} s of the "
        f"start of their container, the slowest after {max(late, default=0):.0f} s"
    )


async def inject(api: Client, name: str) -> tuple[float, object]:
    """Start a server with a sidecar, and end it. Return the seconds until the sidecar served, and an answer.

    The server's container starts once the sidecar's first health check has passed.
    """
    served = {**entry("shout", SHOUT, prefix="shout: "), "service": {}}
    cr = stack(name, NAMESPACE, externalProviders={"inference": [served]})
    pod = await deployed(api, cr)
    answer = await Server.of(pod).chat("shout/echo-1", "ping")
    found = states(pod)
    await removed(api, pod, cr)
    return (began(found["llama-stack"]) - began(found["provider-shout"])).total_seconds(), answer.body
