"""Somebody empties the status of a model on a real API server: the model keeps its provider and its object."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.registrations import until_judged
from support.suites import install_crd
from support.upstream import standin
from support.waiting import message, serves, until, until_deployment

pytestmark = pytest.mark.integration

PAUSED = {"kubefoundry.ai/reconcile-paused": "true"}
GRAPHS = Kind("nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment")
FINALIZER = "kubefoundry.ai/dynamo-provider"
FORGED = "kubefoundry.ai/kaito-provider"
ERASURES: dict[str, list[dict[str, Any]]] = {
    "everything": [{"op": "remove", "path": "/status"}],
    "name": [{"op": "remove", "path": "/status/provider/name"}],
    "empty name": [{"op": "replace", "path": "/status/provider/name", "value": ""}],
}


@pytest.fixture
async def serving(fresh: Suite, api: Client, namespace: str) -> Object:
    """Return a model on Dynamo, after a rule of KAITO got the highest priority."""
    for provider in ("kaito", "dynamo"):
        install_crd(fresh, standin(provider).document)
    fresh.simulate("kaito", "dynamo")
    fresh.start("core", "selector", "kaito", "dynamo")
    for provider in ("kaito", "dynamo"):
        await until(api, PROVIDER_CONFIGS, provider, None, is_ready)
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU), manager="user")
    model = await until_deployment(api, "m", namespace, serves)
    rule = {"op": "add", "path": "/spec/selectionRules/-", "value": {"condition": "true", "priority": 900}}
    fresh.plane.kubectl("patch", "ipc", "kaito", "--type=json", "-p", json.dumps([rule]))
    await until_judged(api, await api.get(PROVIDER_CONFIGS, "kaito"))
    return model


def is_ready(config: Object | None) -> Any:
    return config and (config.get("status") or {}).get("ready")


def is_reported(model: Object) -> bool:
    """Check whether the selector and the provider have reported again."""
    status = model.get("status") or {}
    return bool((status.get("provider") or {}).get("name")) and bool(serves(model))


@pytest.mark.parametrize("annotations", [{}, PAUSED], ids=["running", "paused"])
async def test_emptied_status_keeps_the_provider(
    fresh: Suite, api: Client, serving: Object, namespace: str, annotations: dict[str, str]
) -> None:
    assert serving["status"]["provider"]["name"] == "dynamo"
    before = await api.get(GRAPHS, "m", namespace)
    change: list[dict[str, Any]] = [{"op": "add", "path": "/metadata/annotations", "value": annotations}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, change, manager="user")

    emptied = [{"op": "remove", "path": "/status"}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, emptied, manager="admin", subresource="/status")

    restored = await until_deployment(api, "m", namespace, is_reported)
    assert restored["status"]["provider"]["name"] == "dynamo"
    assert message(restored, "ProviderSelected") == "Provider dynamo auto-selected"
    assert restored["metadata"]["finalizers"] == [FINALIZER]
    assert (await api.get(GRAPHS, "m", namespace))["metadata"]["uid"] == before["metadata"]["uid"]


@pytest.mark.parametrize("erased", ERASURES)
@pytest.mark.parametrize("finalizers", [[FINALIZER, FORGED], [FORGED, FINALIZER]], ids=["last", "first"])
async def test_forged_finalizer_takes_no_emptied_model(
    fresh: Suite,
    api: Client,
    serving: Object,
    namespace: str,
    finalizers: list[str],
    erased: str,
) -> None:
    """A tenant forges the finalizer of a provider that does not run, and would get the model."""
    before = await api.get(GRAPHS, "m", namespace)
    fresh.components["kaito"].stop()
    forged = [{"op": "replace", "path": "/metadata/finalizers", "value": finalizers}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, forged, manager="kaito-provider")
    await api.json_patch(
        MODEL_DEPLOYMENTS, "m", namespace, ERASURES[erased], manager="admin", subresource="/status"
    )

    restored = await until_deployment(api, "m", namespace, is_reported)
    assert restored["status"]["provider"]["name"] == "dynamo"
    fresh.start("kaito")
    await until_deployment(api, "m", namespace, lambda model: model["metadata"]["finalizers"] == [FINALIZER])
    kept = await until_deployment(api, "m", namespace, is_reported)
    assert kept["status"]["provider"]["name"] == "dynamo"
    assert (await api.get(GRAPHS, "m", namespace))["metadata"]["uid"] == before["metadata"]["uid"]
