"""A cluster on a simulated clock for tests of one webhook, without the invariants of a history."""

from __future__ import annotations

import zlib
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from kubefoundry_sdk._api.kinds import EVENTS, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk._runtime import wall_clock
from kubefoundry_sdk.testing._simulated import SimulatedLoop
from simulation.actions import Actions
from simulation.runner import PROVIDERS
from simulation.server import Mutation, Policy, Write
from simulation.steps import Step
from simulation.world import World, determined

Result = TypeVar("Result")


class Cluster:
    """A world with one model, which any provider may serve."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop = loop
        self.writes: list[Write] = []

    async def start(self, webhook: Mutation | None = None, policy: Policy | None = None) -> None:
        """Start the components, a webhook and a policy."""
        self.world = world = World(PROVIDERS, 0)
        world.server.observers.append(self.writes.append)
        if policy:
            world.server.policies["webhook"] = policy
        if webhook:
            world.server.mutations.append(webhook)
        await world.start()

    def do(self, step: Step) -> None:
        """Carry out a step."""
        Actions(self.world).do(step)

    def status(self, kind: Kind, name: str) -> Object:
        """Return the status of an object, without times."""
        live = self.world.server.store.get(
            (kind.group, kind.plural), ("default" if kind is MODEL_DEPLOYMENTS else "", name)
        )
        return untimed((live or {}).get("status") or {})

    def statuses(self) -> list[Object]:
        """Return the statuses of the model and the registrations."""
        return [
            self.status(MODEL_DEPLOYMENTS, "m"),
            *(self.status(PROVIDER_CONFIGS, name) for name in PROVIDERS),
        ]

    def notes(self, reason: str) -> list[str]:
        """Return the notes of the Events with a reason."""
        events = self.world.server.store.all((EVENTS.group, EVENTS.plural))
        return [event["note"] for event in events if event["reason"] == reason]

    def play(self, test: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the simulated clock."""
        with wall_clock.set_to(lambda: self.world.now()):
            return self.loop.run_until_complete(test)


def untimed(status: Object) -> Object:
    """Return a status without times, with its conditions by type."""
    plain = {key: value for key, value in status.items() if key not in ("lastHeartbeat", "start")}
    conditions = [
        {key: value for key, value in item.items() if key != "lastTransitionTime"}
        for item in status.get("conditions", ())
    ]
    return {**plain, "conditions": sorted(conditions, key=lambda item: str(item["type"]))}


@contextmanager
def cluster(name: str) -> Iterator[Cluster]:
    """Yield a cluster on a simulated clock. Its uids depend on the name, because they are unique in a process."""
    loop = SimulatedLoop()
    with determined(zlib.crc32(name.encode()), loop.time):
        it = Cluster(loop)
        try:
            yield it
        finally:
            loop.run_until_complete(it.world.end())
            loop.close()
