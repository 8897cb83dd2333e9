"""Weights in an image on an API server that stores image volumes, with each provider that honours them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import CPU, GPU, model_deployment
from support.waiting import message, reason, serves, until, until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.needs_kubernetes("1.35", "image volumes")]

IMAGE: Final = {"reference": "example.com/models/llama:1", "pullPolicy": "IfNotPresent"}
VOLUME: Final = {"name": "weights", "image": IMAGE, "purpose": "modelCache", "subPath": "models"}
STORAGE: Final = {"volumes": [VOLUME]}
GRAPHS: Final = Kind("nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment")
SERVICES: Final = Kind("ray.io", "v1", "rayservices", "RayService")


def with_image(spec: dict[str, Any]) -> dict[str, Any]:
    return {**spec, "model": {**spec["model"], "storage": STORAGE}}


def workers_of_ray(obj: Object) -> tuple[Object, Object, list[Object]]:
    pod = obj["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]["template"]["spec"]
    return pod, pod["containers"][0], pod["containers"][0]["env"]


def workers_of_dynamo(obj: Object) -> tuple[Object, Object, list[Object]]:
    worker = obj["spec"]["services"]["VllmWorker"]
    return worker["extraPodSpec"], worker["extraPodSpec"]["mainContainer"], worker["envs"]


@pytest.mark.parametrize(
    ("provider", "kind", "engine"),
    [("kuberay", SERVICES, workers_of_ray), ("dynamo", GRAPHS, workers_of_dynamo)],
)
async def test_image_reaches_the_workers_alone(
    suite: Suite, api: Client, namespace: str, provider: str, kind: Kind, engine: Any
) -> None:
    body = model_deployment("m", namespace, with_image(GPU), provider=provider)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")

    await until_deployment(api, "m", namespace, serves)

    live = await api.get(kind, "m", namespace)
    pod, container, env = engine(live)
    assert pod["volumes"] == [{"name": "weights", "image": IMAGE}]
    assert container["volumeMounts"] == [
        {"name": "weights", "mountPath": "/model-cache", "subPath": "models"}
    ]
    assert {"name": "HF_HUB_OFFLINE", "value": "1"} in env
    # neither the frontend nor the head has them
    assert str(live["spec"]).count(IMAGE["reference"]) == 1


async def test_image_is_stored_in_a_deployment(suite: Suite, api: Client, namespace: str) -> None:
    body = model_deployment("m", namespace, with_image(CPU), provider="direct")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")

    created = await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is not None)

    assert created
    pod = created["spec"]["template"]["spec"]
    [engine] = pod["containers"]
    assert {"name": "weights", "image": IMAGE} in pod["volumes"]
    assert {"name": "weights", "mountPath": "/model-cache", "subPath": "models"} in engine["volumeMounts"]
    assert {"name": "LLAMA_ARG_OFFLINE", "value": "1"} in engine["env"]


async def test_kaito_refuses_an_image(suite: Suite, api: Client, namespace: str) -> None:
    spec = {**with_image(GPU), "image": "example.com/vllm:1"}
    body = model_deployment("m", namespace, spec, provider="kaito")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")

    refused = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderCompatible") == "Unsupported"
    )

    assert "KAITO decodes the pods with the Kubernetes types of its release" in message(
        refused, "ProviderCompatible"
    )
