"""A mutating webhook changes the upstream objects that a provider writes: advice and claims about that stay true."""

from __future__ import annotations

from typing import Final

import pytest

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk.testing._server.requests import Target
from simulation.cluster import Cluster, cluster
from simulation.server import Mutation
from simulation.steps import Step
from simulation.world import component

PROVIDER: Final = component("dynamo")
HOSTILE: Final = 40.0
"""Seconds for which the webhook changes objects."""
RETRIED: Final = 330.0
"""Seconds after which a refused write was tried again (contract §4)."""
LOST: Final = "was lost before an edit"
ADVICE: Final = "change the ModelDeployment or contact the owner of that policy"
MORE: Final = Step("edit", "m", {"engine": {"args": {"max-num-seqs": "64"}}})
LESS: Final = Step("edit", "m", {"engine": {"args": None}})


def without(*path: str) -> Mutation:
    """Return a webhook that removes a field of the objects that the provider writes."""

    def change(agent: str, target: Target, new: Object) -> Object:
        if agent == PROVIDER and target.resource.plural == "dynamographdeployments":
            parent = new
            for step in path[:-1]:
                parent = parent.get(step) or {}
            parent.pop(path[-1], None)
        return new

    return change


def reports(it: Cluster) -> list[str]:
    """Return the messages of `ResourceCreated` that the provider has written, in their order."""
    return [
        item["message"]
        for write in it.writes
        if write.by == PROVIDER and write.ok and isinstance(write.body, dict)
        for item in (write.body.get("status") or {}).get("conditions", ())
        if item["type"] == "ResourceCreated"
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [("spec", "services"), ("spec", "backendFramework"), ("spec",)], ids=".".join
)
def test_advice_about_a_removed_value_never_changes(path: tuple[str, ...]) -> None:
    with cluster(f"advice {path}") as it:

        async def run() -> None:
            await it.start(without(*path))
            it.do(Step("create", "m", ["gpu", "dynamo"]))
            await it.loop.advance(HOSTILE)

        it.play(run())

    refused = [text for text in reports(it) if "was accepted, but" in text]
    tried = [write for write in it.writes if write.by == PROVIDER and write.place.storage[0] == "nvidia.com"]
    assert len(tried) > 1
    assert refused != []
    assert [text for text in refused if ADVICE not in text] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "during", "is_lost"),
    [
        pytest.param([], [], False, id="never edited"),
        pytest.param([MORE, LESS], [], False, id="edited before the object existed"),
        pytest.param([], [MORE], True, id="edited after the record was removed"),
    ],
)
def test_record_is_lost_before_an_edit_only_if_edited(
    before: list[Step], during: list[Step], is_lost: bool
) -> None:
    with cluster(f"record {before} {during}") as it:

        async def run() -> str:
            await it.start(without("metadata", "annotations"))
            it.world.crash(PROVIDER, seconds=5.0)
            it.do(Step("create", "m", ["gpu", "dynamo"]))
            for step in before:
                it.do(step)
            await it.loop.advance(HOSTILE / 2)
            for step in during:
                it.do(step)
            await it.loop.advance(HOSTILE / 2)
            it.world.server.mutations.clear()
            await it.loop.advance(RETRIED)
            return str(it.status(MODEL_DEPLOYMENTS, "m").get("message"))

        message = it.play(run())

    assert [text for text in reports(it) if "was not stored as sent" in text] != []
    assert (LOST in message) == is_lost
    assert it.notes("DriftDetected") == []
