"""Admission changes a status: an Event and the message say so, and it is stored soon after that ends."""

from __future__ import annotations

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.deployments import CPU, GPU, model_deployment
from support.events import until_event
from support.mutating_policies import Mutation, mutating, patch
from support.waiting import message, phase, reason, until_deployment

pytestmark = [
    pytest.mark.integration,
    pytest.mark.needs_kubernetes("1.36", "MutatingAdmissionPolicy"),
]

STATUSES = ("kubefoundry.ai", "modeldeployments/status")
HEALED = 150
"""Seconds until a status is stored again: at most a minute after admission, and the time of a busy machine."""


async def test_model_starts_once_core_conditions_are_stored(
    suite: Suite, api: Client, namespace: str
) -> None:
    dropped = patch("remove", "/status/conditions", when="has(object.status.conditions)")
    async with mutating(api, namespace, [Mutation(*STATUSES, dropped)]):
        body = model_deployment("m", namespace, CPU, provider="direct")
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")

        note = await until_event(api, namespace, "WriteRejected", lambda note: "kubefoundry-core" in note)
        assert "condition Validated" in note and "was not stored as sent" in note
        shown = await until_deployment(
            api, "m", namespace, lambda obj: "kubefoundry-core writes" in obj["status"].get("message", "")
        )
        assert "conditions" not in shown["status"]

    healed = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated", seconds=HEALED
    )
    assert "admission" not in message(healed, "Ready")


@pytest.mark.parametrize(
    ("component", "change"),
    [
        pytest.param(
            "provider-dynamo",
            patch("add", "/status/phase", '"Failed"', when="has(object.status.endpoint)"),
            id="provider",
        ),
        pytest.param(
            "selector",
            patch("remove", "/status/provider", when="has(object.status.selection)"),
            id="selector",
        ),
    ],
)
async def test_other_writers_status_heals(
    suite: Suite, api: Client, namespace: str, component: str, change: str
) -> None:
    chosen = "dynamo" if component == "provider-dynamo" else None
    async with mutating(api, namespace, [Mutation(*STATUSES, change)]):
        body = model_deployment("m", namespace, GPU, provider=chosen)
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")

        note = await until_event(
            api, namespace, "WriteRejected", lambda note: f"kubefoundry-{component}" in note
        )
        assert "was not stored as sent" in note

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running", seconds=HEALED)
