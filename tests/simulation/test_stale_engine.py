"""The spec names an engine, and the selected one stays in the status, because its owner is gone or does not run."""

from __future__ import annotations

from typing import Final

import pytest

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from simulation import steps
from simulation.actions import Actions
from simulation.cluster import cluster
from simulation.steps import Step
from simulation.test_changed_while import LONG, STARTED
from simulation.world import SELECTOR
from support.deployments import GPU

SETTLED: Final = 40.0
"""Seconds in which an edit is rolled out."""

LEFT: Final = {
    "owned": None,
    "managers reset": Step("reset", "m"),
    "status restored": Step("restore", "m"),
    "selector stopped": Step("crash", SELECTOR, LONG),
}


@pytest.mark.parametrize("provider", [None, "dynamo"])
@pytest.mark.parametrize("left", LEFT)
def test_engine_that_serves_stays_when_the_spec_drops_it(
    left: str, provider: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(steps.SPECS, "free", {key: GPU[key] for key in GPU if key != "engine"})
    with cluster(f"stale engine {left} {provider}") as it:

        async def run() -> tuple[list[list[str]], Object, Object]:
            await it.start()
            actions = Actions(it.world)
            it.do(Step("create", "m", ["free", provider]))
            await it.loop.advance(STARTED)
            if step := LEFT[left]:
                it.do(step)
                await it.loop.advance(5)
            it.do(Step("edit", "m", {"engine": {"type": "sglang"}}))
            await it.loop.advance(SETTLED)
            named = it.status(MODEL_DEPLOYMENTS, "m")["provider"]
            uids = [obj["metadata"]["uid"] for _, obj in actions.upstream("m")]
            it.do(Step("edit", "m", {"engine": {"type": None}}))
            await it.loop.advance(SETTLED)
            after = [obj["metadata"]["uid"] for _, obj in actions.upstream("m")]
            return [uids, after], named, it.status(MODEL_DEPLOYMENTS, "m")["provider"]

        (before, after), named, free = it.play(run())

    assert "engine" not in named
    assert free["engine"] == "sglang"
    assert after == before
