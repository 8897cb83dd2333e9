"""`spec.podTemplate` and `spec.model.storage` on a real API server, with each provider."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import CPU, GPU, model_deployment
from support.waiting import message, reason, serves, until, until_deployment
from support.wishes import edit_model

pytestmark = pytest.mark.integration

WORKSPACES = Kind("kaito.sh", "v1beta1", "workspaces", "Workspace")
GRAPHS = Kind("nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment")
SERVICES = Kind("ray.io", "v1", "rayservices", "RayService")

SETTINGS: dict[str, Any] = {
    "spec": {
        "imagePullSecrets": [{"name": "registry"}],
        "serviceAccountName": "engine",
        "securityContext": {"runAsUser": 2000, "runAsNonRoot": True},
        "priorityClassName": "high",
        "volumes": [
            {"name": "weights", "persistentVolumeClaim": {"claimName": "weights", "readOnly": False}},
            {"name": "settings", "configMap": {"name": "settings"}},
        ],
    },
    "container": {
        "securityContext": {"allowPrivilegeEscalation": False},
        "volumeMounts": [{"name": "weights", "mountPath": "/weights", "readOnly": True}],
    },
}
VOLUMES = [
    {"name": "weights", "persistentVolumeClaim": {"claimName": "weights"}},
    {"name": "settings", "configMap": {"name": "settings"}},
]


def workspace(obj: Object) -> tuple[Object, Object]:
    pod = obj["inference"]["template"]["spec"]
    return pod, pod["containers"][0]


def workers_of_ray(obj: Object) -> tuple[Object, Object]:
    pod = obj["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]["template"]["spec"]
    return pod, pod["containers"][0]


def workers_of_dynamo(obj: Object) -> tuple[Object, Object]:
    pod = obj["spec"]["services"]["VllmWorker"]["extraPodSpec"]
    return pod, pod["mainContainer"]


CASES = [
    pytest.param("kaito", {**CPU, "image": "example.com/aikit:1"}, WORKSPACES, workspace, id="kaito"),
    pytest.param("kuberay", GPU, SERVICES, workers_of_ray, id="kuberay"),
    pytest.param("dynamo", GPU, GRAPHS, workers_of_dynamo, id="dynamo"),
]


@pytest.mark.parametrize(("provider", "spec", "kind", "engine"), CASES)
async def test_pod_settings_reach_upstream_object_and_leave_it(
    suite: Suite, api: Client, namespace: str, provider: str, spec: dict[str, Any], kind: Kind, engine: Any
) -> None:
    body = model_deployment("m", namespace, {**spec, "podTemplate": SETTINGS}, provider=provider)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")

    await until_deployment(api, "m", namespace, serves)

    pod, container = engine(await api.get(kind, "m", namespace))
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["serviceAccountName"] == "engine"
    assert pod["securityContext"] == {"runAsUser": 2000, "runAsNonRoot": True}
    assert pod["volumes"] == VOLUMES
    assert container["securityContext"] == {"allowPrivilegeEscalation": False}
    assert container["volumeMounts"] == [{"name": "weights", "mountPath": "/weights", "readOnly": True}]

    assert pod.get("automountServiceAccountToken") is (None if provider == "dynamo" else False)

    if provider == "kaito":
        # a change recreates the Workspace, which other tests show
        return
    await edit_model(api, namespace, {"op": "remove", "path": "/spec/podTemplate"})

    def without_settings(obj: Object | None) -> bool:
        pod, container = engine(obj) if obj else ({}, {})
        return bool(pod) and not {"volumes", "securityContext", "serviceAccountName"} & {*pod, *container}

    assert await until(api, kind, "m", namespace, without_settings)


async def test_ray_head_keeps_its_account_and_has_no_volumes(
    suite: Suite, api: Client, namespace: str
) -> None:
    body = model_deployment("m", namespace, {**GPU, "podTemplate": SETTINGS}, provider="kuberay")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")

    await until_deployment(api, "m", namespace, serves)

    cluster = (await api.get(SERVICES, "m", namespace))["spec"]["rayClusterConfig"]
    head = cluster["headGroupSpec"]["template"]["spec"]
    assert head["imagePullSecrets"] == [{"name": "registry"}]
    assert not {"serviceAccountName", "volumes", "automountServiceAccountToken"} & head.keys()
    assert "volumeMounts" not in head["containers"][0]
    assert cluster["autoscalerOptions"] == {"securityContext": {"allowPrivilegeEscalation": False}}
    [workers] = cluster["workerGroupSpecs"]
    assert workers["template"]["spec"]["automountServiceAccountToken"] is False


async def test_preset_refuses_pod_settings(suite: Suite, api: Client, namespace: str) -> None:
    body = model_deployment("m", namespace, {**GPU, "podTemplate": SETTINGS}, provider="kaito")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")

    refused = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderCompatible") == "Unsupported"
    )

    assert "KAITO presets do not support podTemplate.spec.volumes: remove it, or set image" in message(
        refused, "ProviderCompatible"
    )


STORAGE = {"volumes": [{"name": "cache", "claimName": "w", "purpose": "modelCache", "readOnly": True}]}
MODEL = {**GPU["model"], "storage": STORAGE}
STORED = [
    pytest.param("kaito", {**GPU, "image": "example.com/vllm:1"}, WORKSPACES, workspace, id="kaito"),
    *CASES[1:],
]


@pytest.mark.parametrize(("provider", "spec", "kind", "engine"), STORED)
async def test_storage_reaches_upstream_object_and_leaves_it(
    suite: Suite, api: Client, namespace: str, provider: str, spec: dict[str, Any], kind: Kind, engine: Any
) -> None:
    body = model_deployment("m", namespace, {**spec, "model": MODEL}, provider=provider)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")

    await until_deployment(api, "m", namespace, serves)

    live = await api.get(kind, "m", namespace)
    pod, container = engine(live)
    env = live["spec"]["services"]["VllmWorker"]["envs"] if provider == "dynamo" else container["env"]
    assert pod["volumes"] == [
        {"name": "cache", "persistentVolumeClaim": {"claimName": "w", "readOnly": True}}
    ]
    assert container["volumeMounts"] == [{"name": "cache", "mountPath": "/model-cache"}]
    assert {"name": "HF_HOME", "value": "/model-cache"} in env
    # neither the frontend nor the head has them
    assert str(live.get("spec") or live["inference"]).count("/model-cache") == 2

    if provider == "kaito":
        return
    await edit_model(api, namespace, {"op": "remove", "path": "/spec/model/storage"})

    assert await until(api, kind, "m", namespace, lambda obj: "/model-cache" not in str(obj))


async def test_dynamo_and_preset_refuse_offline_mode(suite: Suite, api: Client, namespace: str) -> None:
    model = {**GPU["model"], "storage": {"offline": True}}
    for provider, sentence in (
        ("dynamo", "Dynamo's frontend fetches the tokenizer of a model from the hub"),
        ("kaito", "KAITO presets do not support model.storage.offline: remove it, or set image"),
    ):
        body = model_deployment(provider, namespace, {**GPU, "model": model}, provider=provider)
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")

        refused = await until_deployment(
            api, provider, namespace, lambda obj: reason(obj, "ProviderCompatible") == "Unsupported"
        )

        assert sentence in message(refused, "ProviderCompatible")
