"""A finalizer holds the upstream object of a deleted model: the message names the finalizer."""

from __future__ import annotations

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import CPU, model_deployment
from support.waiting import reason, until, until_deployment

pytestmark = pytest.mark.integration

HOLD = "example.com/hold"


async def test_message_names_the_finalizer(suite: Suite, api: Client, namespace: str) -> None:
    body = model_deployment("m", namespace, CPU, provider="direct")
    made = await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated"
    )
    add = [{"op": "add", "path": "/metadata/finalizers", "value": [HOLD]}]
    await api.json_patch(DEPLOYMENTS, "m", namespace, add, manager="somebody")

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    def is_explained(obj: Object) -> bool:
        return HOLD in obj["status"].get("message", "")

    waiting = await until_deployment(api, "m", namespace, is_explained)
    words = waiting["status"]["message"]
    assert words.startswith(f"Waiting for Deployment {namespace}/m")
    assert words.endswith(f" to be deleted; held by finalizer {HOLD}")
    live = await api.get(DEPLOYMENTS, "m", namespace)
    at = live["metadata"]["finalizers"].index(HOLD)
    remove = [{"op": "remove", "path": f"/metadata/finalizers/{at}"}]
    await api.json_patch(DEPLOYMENTS, "m", namespace, remove, manager="somebody")
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
