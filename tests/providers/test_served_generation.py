"""Generated histories of edits and failing pods: each claim of a status is true of a pod that serves."""

from __future__ import annotations

import random

import pytest

from kubefoundry_sdk.testing import simulated
from support.known_pods import PROVIDERS, World, harness

HISTORIES = 8
"""Histories of each provider."""
STEPS = 14


def untrue(world: World) -> list[str]:
    """Return the claims of the status that no ready pod proves."""
    status = world.harness.status
    ready = world.harness.condition("Ready")
    serving = {pod.generation for pod in world.pods if pod.ready}
    named = status.get("endpoint", {}).get("model", "")
    claims = []
    if ready["status"] == "True" and not serving:
        claims.append("Ready is True, but no pod serves")
    if ready["status"] == "True" and status["observedGeneration"] not in serving | {0}:
        claims.append(f"no pod of generation {status['observedGeneration']} serves, but of {serving}")
    if named and named not in {f"name-{generation}" for generation in serving}:
        claims.append(f"no pod serves {named}, but generations {serving} do")
    return claims


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(HISTORIES))
@pytest.mark.parametrize("provider", PROVIDERS)
@simulated
async def test_status_claims_only_what_pods_serve(provider: str, seed: int) -> None:
    chance = random.Random(seed)
    history = []
    async with harness(provider) as model:
        world = World(provider, model, chance)
        await world.start()
        assert model.status["observedGeneration"] == 1, model.status
        for _ in range(STEPS):
            steps = [world.edit, world.see, world.fail, world.recover if world.pods else world.see]
            step = chance.choice([*steps * 3, world.serve, world.restart, world.wait])
            history.append(step.__name__)
            await step()
            assert untrue(world) == [], f"{history}: {model.status} {world.pods}"
        await world.serve()

        newest = model.model["metadata"]["generation"]
        assert (model.condition("Ready")["status"], model.status["observedGeneration"]) == ("True", newest)
        assert model.status["endpoint"]["model"] == f"name-{newest}"
