"""Changes of a ModelDeployment that start no reconcile of its provider."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import REGISTRY

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.requests import path
from kubefoundry_sdk.testing import Harness, simulated
from kubefoundry_sdk.testing._harness import NAMESPACE
from support.things import PROVIDER, SPEC, crd

APPLY = "application/apply-patch+yaml"
CO_OWNER = "co-owner"


def reconciles() -> float:
    labels = {"name": PROVIDER.name}
    return REGISTRY.get_sample_value("workqueue_work_duration_seconds_count", labels) or 0.0


async def write_status(harness: Harness, status: dict[str, Any]) -> dict[str, Any]:
    """Apply these status fields as another manager, let the provider react, and return the model."""
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.MODEL_DEPLOYMENT,
        "metadata": {"name": harness.name, "namespace": NAMESPACE},
        "status": status,
    }
    url = f"{path(MODEL_DEPLOYMENTS, NAMESPACE, harness.name)}/status"
    harness._send("PATCH", url, body, APPLY, CO_OWNER, force="true")
    await harness.advance(5)
    return harness.get(MODEL_DEPLOYMENTS, harness.name)


@simulated
@pytest.mark.parametrize("others", [{}, {"selection": {"reselect": "1"}}], ids=["released", "changed"])
async def test_release_of_a_shared_field_wakes_no_provider(others: dict[str, Any]) -> None:
    async with Harness(PROVIDER, crd()) as harness:
        await harness.create(SPEC)
        status = harness.get(MODEL_DEPLOYMENTS, harness.name)["status"]
        kept = {"phase": status["phase"]}
        shared = await write_status(harness, {**kept, "message": status["message"]})
        before = reconciles()

        released = await write_status(harness, {**kept, **others})

        assert reconciles() - before == len(others)
    assert released["metadata"]["resourceVersion"] != shared["metadata"]["resourceVersion"]
    assert released["status"]["message"] == status["message"]


@simulated
async def test_write_after_a_release_meets_no_conflict() -> None:
    async with Harness(PROVIDER, crd()) as harness:
        await harness.create(SPEC)
        status = harness.get(MODEL_DEPLOYMENTS, harness.name)["status"]
        kept = {"phase": status["phase"]}
        await write_status(harness, {**kept, "message": status["message"]})
        await write_status(harness, kept)
        before = len(harness.writes)

        await harness.edit({**SPEC, "scaling": {"replicas": 2}})

        writes = harness.writes[before:]
    assert writes
    assert {write.code for write in writes} <= {200, 201}
