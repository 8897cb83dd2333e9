"""A mutating webhook changes status writes: each writer says so, writes rarely, and heals after the webhook's end."""

from __future__ import annotations

from typing import Final

import pytest

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from simulation.cluster import Cluster, cluster
from simulation.runner import PROVIDERS
from simulation.status_webhook import CHANGES, WRITERS, Webhook, Writer, is_sent
from simulation.steps import Step

HOSTILE: Final = 200.0
"""Seconds for which the webhook changes statuses."""
HEALED: Final = 90.0
"""Seconds after the webhook's end in which everything has to be as without it."""
STARTS: Final = 60.0
"""Seconds in which a model starts, with a write for each step."""
A_MINUTE: Final = 3
"""The most writes of one component to the status of one object in a minute, once the model has started."""

CASES: Final = [
    pytest.param(writer, change, id=f"{writer}-{change.replace(' ', '-')}")
    for writer in WRITERS
    for change in CHANGES
    if is_sent(change, writer)
]


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
@pytest.mark.sampled(3)
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
    assert list(map(_lasting, healed)) == list(map(_lasting, calm))


def _lasting(status: Object) -> Object:
    """Return the status without what an emptied one loses for good: the reason of the choice, and the start."""
    lasting = {name: value for name, value in status.items() if name != "start"}
    if "provider" in lasting:
        provider = lasting["provider"].items()
        lasting["provider"] = {name: value for name, value in provider if name != "selectedReason"}
    return lasting


@pytest.mark.slow
@pytest.mark.parametrize("change", ["no conditions", "other phase", "other generation", "other condition"])
def test_message_names_a_changed_status_of_a_provider(change: str) -> None:
    webhook = Webhook(WRITERS["provider"], CHANGES[change])
    with cluster(f"message {change}") as it:

        async def run() -> Object:
            await it.start(webhook, webhook.see)
            it.do(Step("create", "m", ["gpu", None]))
            await it.loop.advance(HOSTILE)
            return it.status(MODEL_DEPLOYMENTS, "m")

        status = it.play(run())

    assert "was not stored as sent: an admission webhook or policy changes it" in status["message"]


@pytest.mark.slow
@pytest.mark.sampled(3)
def test_report_of_a_cut_message_ends_when_a_short_one_fits() -> None:
    """The report makes the message longer, so that the webhook cuts the report."""

    def cut(status: Object, sent: Object) -> None:
        if "message" in sent:
            status["message"] = sent["message"][:100]

    webhook = Webhook(WRITERS["provider"], cut)
    with cluster("cut message") as it:

        async def run() -> tuple[str, str]:
            await it.start(webhook, webhook.see)
            it.do(Step("create", "m", ["gpu", None]))
            await it.loop.advance(STARTS)
            it.do(Step("policy", "webhook-down", STARTS))
            it.do(Step("edit", "m", {"engine": {"contextLength": 4096}}))
            await it.loop.advance(STARTS / 2)
            refused = it.status(MODEL_DEPLOYMENTS, "m")["message"]
            await it.loop.advance(HOSTILE)
            return refused, it.status(MODEL_DEPLOYMENTS, "m")["message"]

        refused, later = it.play(run())

    assert len(refused) == 100
    assert later == "All resources are ready"
