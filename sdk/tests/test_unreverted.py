"""A change of the object that serves, while an obstacle keeps the provider from planning and reverting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kubefoundry_sdk import Deployment, Provider, Rendered, Schema
from kubefoundry_sdk.testing import Harness, simulated
from support.things import PROVIDER, SPEC, crd

OBSTACLE = "obstacle"
"""An annotation of the model with which both providers find an obstacle."""
IMAGE = "example.com/other:9"


def render(deployment: Deployment, schema: Schema) -> Rendered:
    if OBSTACLE in deployment.annotations:
        raise ZeroDivisionError("a mistake")
    return PROVIDER.render(deployment, schema)


def supports(deployment: Deployment, schema: Schema | None) -> Sequence[str]:
    return ["it is too large"] if OBSTACLE in deployment.annotations else []


OBSTACLES = {
    "ProviderError": replace(PROVIDER, render=render),
    "Unsupported": replace(PROVIDER, supports=supports),
}
"""Providers by the reason that they report."""


async def serve(harness: Harness) -> None:
    """Let the model serve, and its provider find the obstacle."""
    await harness.create(SPEC)
    await harness.upstream({"ready": 1})
    await harness.annotate({OBSTACLE: "yes"})
    await harness.advance(60)


@pytest.mark.parametrize(
    ("restarts", "resets"),
    [(False, False), (True, False), (False, True)],
    ids=["same process", "new process", "managedFields reset"],
)
@pytest.mark.parametrize("provider", OBSTACLES.values(), ids=OBSTACLES.keys())
@simulated
async def test_ready_names_no_generation_that_others_changed(
    provider: Provider, restarts: bool, resets: bool
) -> None:
    async with Harness(provider, crd()) as harness:
        await serve(harness)
        before = harness.status["observedGeneration"]
        thing = harness.upstream_object
        changed = {**thing, "spec": {**thing["spec"], "image": IMAGE}}
        if resets:
            changed["metadata"] = {**thing["metadata"], "managedFields": [{}]}
        harness.put(changed, manager="somebody")
        if restarts:
            await harness.restart()
        await harness.upstream({"ready": 1, "image": IMAGE})
        during = harness.status
        await harness.annotate({OBSTACLE: None})
        reverted = harness.upstream_object["spec"]["image"]
        await harness.upstream({"ready": 1, "image": reverted})

        assert before == 1
        assert (during["phase"], during["observedGeneration"]) == ("Running", 0)
        assert "others changed spec.image of Thing 'model', which is not reverted yet" in during["message"]
        assert (harness.status["observedGeneration"], reverted) == (1, SPEC["image"])


@pytest.mark.parametrize("provider", OBSTACLES.values(), ids=OBSTACLES.keys())
@simulated
async def test_obstacle_alone_leaves_the_served_generation(provider: Provider) -> None:
    async with Harness(provider, crd()) as harness:
        await serve(harness)
        await harness.edit({"image": "example.com/engine:2"})
        await harness.advance(700)

        assert (harness.status["phase"], harness.status["observedGeneration"]) == ("Running", 1)
        assert "others changed" not in harness.status["message"]
