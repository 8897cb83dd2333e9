"""A status that the API server refuses is reported by an Event, and stored once it is accepted."""

from __future__ import annotations

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.events import until_event
from support.refusing_webhook import refusing
from support.waiting import phase, until_deployment

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("component", "marker", "code"),
    [
        pytest.param("core", '"type": "Validated"', 422, id="core"),
        pytest.param("selector", '"reason": "AutoSelected"', 413, id="selector"),
        pytest.param("provider-dynamo", '"phase": "Running"', 403, id="provider"),
    ],
)
async def test_event_reports_a_refused_status_write(
    suite: Suite, api: Client, namespace: str, component: str, marker: str, code: int
) -> None:
    example = model_deployment("example", namespace, GPU)
    chosen = "dynamo" if component == "provider-dynamo" else None

    async with refusing(
        api, MODEL_DEPLOYMENTS, namespace, marker=marker, code=code, words="not here", example=example
    ):
        await api.create(
            MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider=chosen), manager="test"
        )

        note = await until_event(api, namespace, "WriteRejected")
        assert note.startswith(f"A write of kubefoundry-{component} was rejected: ")
        assert "modeldeployments/m/status" in note and "denied the request: not here" in note

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
