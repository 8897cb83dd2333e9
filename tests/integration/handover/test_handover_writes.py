"""A change of provider takes few writes: core and both providers never overwrite each other."""

from __future__ import annotations

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.audit import WRITES, AuditLog
from support.deployments import GPU, model_deployment
from support.waiting import phase, until_deployment

pytestmark = pytest.mark.integration


async def test_handover_message_is_the_waiting_providers(suite: Suite, api: Client, namespace: str) -> None:
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider="dynamo"), manager="test"
    )
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    log = AuditLog(suite)

    change = {"op": "replace", "path": "/spec/provider/name", "value": "kuberay"}
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, [change], manager="test")
    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: phase(obj) == "Running" and obj["status"]["provider"].get("resourceKind") == "RayService",
    )

    # The choice; at most once more for each of the two, whose writes it may meet. A conflict writes nothing.
    written = [
        entry["requestURI"]
        for entry in log.requests("core", namespace, "modeldeployments")
        if entry["verb"] in WRITES and entry["responseStatus"]["code"] == 200
    ]
    assert 1 <= len(written) <= 3, written
