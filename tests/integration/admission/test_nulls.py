"""Null counts as an empty value, as in built-in resources, because templates render one for each unset value."""

from __future__ import annotations

import asyncio
import json

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._api.validation import default
from kubefoundry_sdk._cluster.client import Client

pytestmark = pytest.mark.integration

SPEC = {
    "model": {"id": "org/model-gguf", "servedName": None},
    "engine": {"type": "llamacpp", "contextLength": None, "args": None},
    "provider": None,
    "image": "example.com/llama:1",
    "resources": {"cpu": "2", "memory": "2Gi", "gpu": None},
    "scaling": None,
    "nodeSelector": None,
    "tolerations": None,
    "env": None,
    "secrets": {"huggingFaceToken": None},
    "podTemplate": None,
}


@pytest.mark.parametrize("how", [[], ["--server-side"]], ids=["client-side", "server-side"])
async def test_null_fields_are_accepted_as_empty(
    suite: Suite, api: Client, namespace: str, how: list[str]
) -> None:
    body = {
        "apiVersion": MODEL_DEPLOYMENTS.api_version,
        "kind": MODEL_DEPLOYMENTS.kind,
        "metadata": {"name": "m", "namespace": namespace},
        "spec": SPEC,
    }

    for _ in range(2):
        await asyncio.to_thread(suite.plane.kubectl, "apply", *how, "-f", "-", input=json.dumps(body))

    stored = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert stored["spec"] == default(SPEC)
    assert stored["metadata"]["generation"] == 1
