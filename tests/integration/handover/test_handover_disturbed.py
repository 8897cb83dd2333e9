"""A tenant disturbs a hand-over in their namespace: it ends in order, without endless writes."""

from __future__ import annotations

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.audit import WRITES, AuditLog
from support.deployments import GPU, model_deployment
from support.finalizers import HELD
from support.kinds import UPSTREAM
from support.waiting import message, phase, reason, until, until_deployment

pytestmark = pytest.mark.integration

TO_KUBERAY = {"op": "replace", "path": "/spec/provider/name", "value": "kuberay"}


async def test_handover_waits_while_the_deployment_stays(suite: Suite, api: Client, namespace: str) -> None:
    """Anybody who may edit it can add one."""
    body = model_deployment("m", namespace, GPU, provider="kaito")
    body["metadata"]["finalizers"] = ["orphan"]
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")

    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, [TO_KUBERAY], manager="test")
    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: phase(obj) == "Running" and obj["status"]["provider"].get("resourceKind") == "RayService",
    )

    workspaces, _ = await api.list(UPSTREAM["kaito"], namespace)
    assert workspaces == []


async def test_handover_providers_agree_while_a_helper_lingers(
    suite: Suite, api: Client, namespace: str
) -> None:
    """Somebody's finalizer on the helper, as a cloud provider's on a Service of type LoadBalancer."""
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider="kaito"), manager="test"
    )
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    items, _ = await api.list(CONFIG_MAPS, namespace)
    [helper] = [item["metadata"]["name"] for item in items if item["metadata"].get("labels")]
    hold = [{"op": "add", "path": "/metadata/finalizers", "value": [HELD]}]
    await api.json_patch(CONFIG_MAPS, helper, namespace, hold, manager="test")

    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, [TO_KUBERAY], manager="test")
    await until(api, UPSTREAM["kaito"], "m", namespace, lambda obj: obj is None)
    waiting = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "WaitingForCleanup"
    )
    log = AuditLog(suite)
    # As long as other models take to run on both providers.
    for provider in ("kaito", "kuberay"):
        await api.create(
            MODEL_DEPLOYMENTS, model_deployment(provider, namespace, GPU, provider=provider), manager="test"
        )
        await until_deployment(api, provider, namespace, lambda obj: phase(obj) == "Running")
    written = [
        f"{component} {entry['requestURI']} {entry['responseStatus']['code']} {entry['requestReceivedTimestamp']}"
        for component in ("provider-kaito", "provider-kuberay", "core")
        for entry in log.requests(component, namespace, "modeldeployments")
        if entry["verb"] in WRITES and entry["objectRef"]["name"] == "m"
    ]

    assert len(written) <= 6, "\n".join(written)
    assert "provider kaito" in message(waiting, "ResourceCreated")
    await api.json_patch(
        CONFIG_MAPS, helper, namespace, [{"op": "remove", "path": "/metadata/finalizers"}], manager="test"
    )
    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: phase(obj) == "Running" and obj["status"]["provider"].get("resourceKind") == "RayService",
    )
