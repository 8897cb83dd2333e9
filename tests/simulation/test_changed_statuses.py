"""A mutating webhook changes status writes: each writer says so, writes rarely, and heals after the webhook's end."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pytest

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk.testing._server.requests import Request, Target
from simulation.cluster import Cluster, cluster
from simulation.runner import PROVIDERS
from simulation.server import Place
from simulation.steps import Step
from simulation.world import CORE, SELECTOR, component

PROVIDER: Final = component(PROVIDERS[0])
HOSTILE: Final = 200.0
"""Seconds for which the webhook changes statuses."""
HEALED: Final = 90.0
"""Seconds after the webhook's end in which everything has to be as without it."""
STARTS: Final = 60.0
"""Seconds in which a model starts, with a write for each step."""
A_MINUTE: Final = 3
"""The most writes of one component to the status of one object in a minute, once the model has started."""


class Writer(NamedTuple):
    """A component, and the kind whose status it writes."""

    agent: str
    kind: Kind


WRITERS: Final = {
    "core": Writer(CORE, MODEL_DEPLOYMENTS),
    "selector": Writer(SELECTOR, MODEL_DEPLOYMENTS),
    "provider": Writer(PROVIDER, MODEL_DEPLOYMENTS),
    "registration": Writer(PROVIDER, PROVIDER_CONFIGS),
    "rules": Writer(SELECTOR, PROVIDER_CONFIGS),
}


def _without_conditions(status: Object, sent: Object) -> None:
    status.pop("conditions", None)


def _without_one_field(status: Object, sent: Object) -> None:
    status.pop(next(iter(sent)), None)


def _without_one_condition(status: Object, sent: Object) -> None:
    if dropped := [item["type"] for item in sent.get("conditions", ())[:1]]:
        status["conditions"] = [item for item in status["conditions"] if item["type"] not in dropped]


def _other_phase(status: Object, sent: Object) -> None:
    if "phase" in sent:
        status["phase"] = "Failed"


def _other_generation(status: Object, sent: Object) -> None:
    if "observedGeneration" in sent:
        status["observedGeneration"] = 7


def _other_condition(status: Object, sent: Object) -> None:
    own = [item["type"] for item in sent.get("conditions", ())]
    for item in status.get("conditions", ()):
        if item["type"] in own:
            item |= {"status": "Unknown", "reason": "Webhook"}


def _other_message(status: Object, sent: Object) -> None:
    if "message" in sent:
        status["message"] = "x"


def _nothing(status: Object, sent: Object) -> None:
    status.clear()


CHANGES: Final[dict[str, Callable[[Object, Object], None]]] = {
    "no conditions": _without_conditions,
    "one condition less": _without_one_condition,
    "one field less": _without_one_field,
    "other phase": _other_phase,
    "other generation": _other_generation,
    "other condition": _other_condition,
    "other message": _other_message,
    "no status": _nothing,
}

OWNS: Final = {
    "other phase": ("core", "provider"),
    "other generation": ("core", "provider"),
    "other message": ("core", "provider"),
}
"""The writers of a field; the others do not send it."""

CASES: Final = [
    pytest.param(writer, change, id=f"{writer}-{change.replace(' ', '-')}")
    for writer in WRITERS
    for change in CHANGES
    if writer in OWNS.get(change, WRITERS)
]


@dataclass
class Webhook:
    """Changes the status writes of one writer."""

    writer: Writer
    change: Callable[[Object, Object], None]
    sent: Object = field(default_factory=dict)
    hits: int = 0

    def see(self, request: Request, place: Place, body: Any, before: Object | None) -> Request:
        """Remember the status that the present request sends."""
        self.sent = (body.get("status") or {}) if isinstance(body, dict) else {}
        return request

    def __call__(self, agent: str, target: Target, new: Object) -> Object:
        """Change the object."""
        kind = self.writer.kind
        is_its = agent == self.writer.agent and target.subresource == "status"
        if not is_its or target.resource.storage != (kind.group, kind.plural) or not self.sent:
            return new
        before = copy.deepcopy(new)
        status = new.setdefault("status", {})
        self.change(status, self.sent)
        if not status:
            del new["status"]
        self.hits += new != before
        return new


def writes_of(cluster: Cluster, writer: Writer, name: str, since: float) -> int:
    """Count the status writes of a writer to an object, heartbeats included."""
    kind = writer.kind
    return sum(
        write.by == writer.agent
        and write.place.storage == (kind.group, kind.plural)
        and write.place.key[1] == name
        and write.place.subresource == "status"
        for write in cluster.writes
        if write.at >= since
    )


@pytest.fixture(scope="module")
def calm() -> list[Object]:
    """Return the statuses of a cluster without a webhook."""
    with cluster("calm") as it:

        async def run() -> list[Object]:
            await it.start()
            it.do(Step("create", "m", ["gpu", None]))
            await it.loop.advance(HOSTILE + HEALED)
            return it.statuses()

        return it.play(run())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "change"), CASES)
def test_changed_status_is_reported_and_heals(name: str, change: str, calm: list[Object]) -> None:
    writer = WRITERS[name]
    webhook = Webhook(writer, CHANGES[change])
    about = "m" if writer.kind is MODEL_DEPLOYMENTS else PROVIDERS[0]
    with cluster(f"{name} {change}") as it:

        async def run() -> tuple[int, list[str], list[Object]]:
            await it.start(webhook, webhook.see)
            it.do(Step("create", "m", ["gpu", None]))
            await it.loop.advance(STARTS)
            started = it.loop.time()
            await it.loop.advance(HOSTILE - STARTS)
            count = writes_of(it, writer, about, started)
            notes = it.notes("WriteRejected")
            it.world.server.mutations.clear()
            await it.loop.advance(HEALED)
            return count, notes, it.statuses()

        count, notes, healed = it.play(run())

    assert webhook.hits > 0
    assert [note for note in notes if writer.agent in note and "was not stored as sent" in note] != []
    assert count <= A_MINUTE * (HOSTILE - STARTS) / 60
    assert healed == calm
