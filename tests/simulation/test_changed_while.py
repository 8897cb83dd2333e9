"""A mutating webhook changes a status in each state in which its writer starts from the status that is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from kubefoundry_sdk._api import managed_fields, names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from simulation.actions import Actions
from simulation.cluster import Cluster, cluster, untimed
from simulation.runner import PROVIDERS
from simulation.status_webhook import CHANGES, WRITERS, Webhook, Writer, is_sent
from simulation.steps import Step

STARTED: Final = 60.0
"""Seconds in which a model starts."""
HOSTILE: Final = 100.0
"""Seconds for which the webhook changes statuses."""
HEALED: Final = 90.0
"""Seconds after the webhook's end in which the writer's part has to be as without it."""
LONG: Final = 10_000.0
MORE: Final = {"engine": {"args": {"max-num-seqs": "64"}}}


def _pause(actions: Actions) -> None:
    actions.do(Step("annotate", "m", {names.PAUSED_ANNOTATION: "true"}))


def _edit(actions: Actions) -> None:
    actions.do(Step("edit", "m", MORE))


def _hide_upstream(actions: Actions) -> None:
    actions.do(Step("unlisted", PROVIDERS[0], LONG))


def _delete(actions: Actions) -> None:
    actions.change_metadata(
        "m", lambda meta: {**meta, "finalizers": [*meta["finalizers"], "example.com/kept"]}
    )
    actions.do(Step("delete", "m"))


def _refuse(actions: Actions) -> None:
    actions.do(Step("policy", "webhook-down", LONG))
    _edit(actions)


def _try(actions: Actions) -> None:
    actions.do(Step("annotate", "m", {names.DRY_RUN_ANNOTATION: "true"}))
    _edit(actions)


def _invalidate(actions: Actions) -> None:
    """Store an invalid spec, as an API server without core's webhook would."""
    live = actions.model("m")
    assert live is not None
    spec = {**live["spec"], "engine": {**live["spec"]["engine"], "args": {"model": "other"}}}
    actions.send("PUT", MODEL_DEPLOYMENTS, "m", {**live, "spec": spec})


def _hand_over(actions: Actions) -> None:
    actions.do(Step("policy", "webhook-down", LONG))
    actions.do(Step("edit", "m", {"provider": {"name": PROVIDERS[1]}}))


STATES: Final[dict[str, Callable[[Actions], None]]] = {
    "edited": _edit,
    "paused": _pause,
    "unlisted": _hide_upstream,
    "deleted": _delete,
    "refused": _refuse,
    "tried": _try,
    "invalid": _invalidate,
    "handed over": _hand_over,
}

UNSELECTED: Final = ("paused", "deleted", "invalid")
"""States in which the selector selects nothing. A lost status has no provider, so the provider has no turn."""

CASES: Final = [
    pytest.param(writer, state, change, id=f"{writer}-{state}-{change}".replace(" ", "-"))
    for writer, (_, _, kind) in WRITERS.items()
    if kind is MODEL_DEPLOYMENTS
    for state in STATES
    for change in CHANGES
    if is_sent(change, writer, reported=True)
    and (writer == "selector" or change != "no status" or state not in UNSELECTED)
]


def own_part(it: Cluster, writer: Writer) -> Object | None:
    """Return the part of the model's status that the writer owns, None if it owns none."""
    live = Actions(it.world).model("m")
    assert live is not None
    fields = managed_fields.owned(live, writer.manager, "status")
    if fields is None:
        return None
    part: Object = managed_fields.project(live.get("status") or {}, fields.get("f:status", {}))
    return untimed(part)


def played(name: str, writer: Writer, state: str, webhook: Webhook | None) -> Object | None:
    """Return the writer's part of the status at the end of the webhook, after an edit and then the state."""
    with cluster(name) as it:

        async def run() -> Object | None:
            await it.start(policy=webhook.see if webhook else None)
            it.do(Step("create", "m", ["gpu", None]))
            await it.loop.advance(STARTED)
            if webhook:
                it.world.server.mutations.append(webhook)
            it.do(Step("edit", "m", {"engine": {"contextLength": 4096}}))
            await it.loop.advance(5)
            STATES[state](Actions(it.world))
            await it.loop.advance(HOSTILE)
            it.world.server.mutations.clear()
            await it.loop.advance(HEALED)
            return own_part(it, writer)

        return it.play(run())


@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.parametrize(("name", "state", "change"), CASES)
def test_changed_status_heals_in_each_state(name: str, state: str, change: str) -> None:
    writer = WRITERS[name]
    webhook = Webhook(writer, CHANGES[change])

    healed = played(f"{name} {state} {change}", writer, state, webhook)

    assert webhook.hits > 0
    assert healed == played(f"{name} {state}", writer, state, None)
