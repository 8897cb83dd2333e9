"""Another provider is chosen, and accepts, while a reconcile of the earlier one waits for the API server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk import Deployment, Rendered, Schema
from kubefoundry_sdk._api import names, reasons
from kubefoundry_sdk._api.conditions import condition
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.requests import path
from kubefoundry_sdk.testing import Harness, simulated
from kubefoundry_sdk.testing._harness import NAMESPACE
from kubefoundry_sdk.testing._server.requests import MERGE_PATCH
from support.things import PROVIDER, SPEC, crd, render

OTHER = "other"


def choose_other(harness: Harness) -> None:
    """Choose the other provider, as core does, and accept the model, as that provider does."""
    applied: dict[str, Any] = {
        names.CORE_MANAGER: {"provider": {"name": OTHER, "selectedReason": reasons.EXPLICIT_SELECTION}},
        names.provider_manager(OTHER): {"conditions": accepted(harness.model["metadata"]["generation"])},
    }
    url = path(MODEL_DEPLOYMENTS, NAMESPACE, harness.name) + "/status"
    for manager, status in applied.items():
        body = {"apiVersion": names.API_VERSION, "kind": names.MODEL_DEPLOYMENT, "status": status}
        body |= {"metadata": {"name": harness.name, "namespace": NAMESPACE}}
        harness._send("PATCH", url, body, "application/apply-patch+yaml", manager, force="true")


def accepted(generation: int) -> list[Object]:
    conditions = (
        condition(
            reasons.PROVIDER_COMPATIBLE, True, "CompatibilityVerified", "Other runs it", generation=generation
        ),
        condition(reasons.RESOURCE_CREATED, False, "WaitingForCleanup", "Other waits", generation=generation),
    )
    return [{**item, "lastTransitionTime": "2026-01-01T00:00:00Z"} for item in conditions]


@pytest.mark.parametrize("resets", [False, True], ids=["managers known", "managedFields reset"])
@simulated
async def test_nothing_serves_in_the_status_after_a_hand_over(resets: bool) -> None:
    """After a reset, a manager that never writes again owns all values, too."""
    url = path(MODEL_DEPLOYMENTS, NAMESPACE, "model")
    async with Harness(PROVIDER, crd()) as harness:
        await harness.create(SPEC)
        await harness.upstream({"ready": 1})
        if resets:
            harness._send("PATCH", url, {"metadata": {"managedFields": [{}]}}, MERGE_PATCH)
            await harness.advance(5)
        harness._send("PATCH", url, {"spec": {"provider": {"name": OTHER}}}, MERGE_PATCH)
        choose_other(harness)
        await harness.advance(30)

        assert harness.upstream_object == {}
        assert "resourceName" not in harness.status["provider"]
        assert harness.status.keys() == {"provider", "conditions"}
        assert harness.condition(reasons.READY) == {}
        assert harness.condition(reasons.PROVIDER_COMPATIBLE)["message"] == "Other runs it"


@simulated
async def test_earlier_provider_leaves_acceptance_of_newly_chosen_one() -> None:
    async with Harness(PROVIDER, crd()) as harness:
        await harness.create(SPEC)
        await harness.upstream({"ready": 1})
        assert harness.status["phase"] == "Running"

        def render_while_choosing(deployment: Deployment, schema: Schema) -> Rendered:
            if deployment.spec.scaling.replicas == 2 and harness.status["provider"]["name"] != OTHER:
                # The apply of this object is sent next, and the choice arrives before its answer.
                choose_other(harness)
            return render(deployment, schema)

        await harness.restart(replace(PROVIDER, render=render_while_choosing))
        await harness.edit({"scaling": {"replicas": 2}})

    assert harness.condition(reasons.PROVIDER_COMPATIBLE)["message"] == "Other runs it"
    assert harness.condition(reasons.RESOURCE_CREATED)["message"] == "Other waits"
    # The acceptance counts, so the earlier provider has let go.
    assert harness.upstream_object == {}
    managers = {entry["manager"] for entry in harness.model["metadata"]["managedFields"]}
    assert names.provider_manager(PROVIDER.name) not in managers
