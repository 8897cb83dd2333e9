"""Labels that pass to upstream objects, entries of others there, and what a model in a queue of Kueue waits for."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, WORKLOADS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk.pod import QUEUE_LABEL
from support.deployments import CPU, GPU, model_deployment
from support.events import notes
from support.kinds import RAY_SERVICES, WORKSPACES
from support.restarts import restarted
from support.suites import install_crd
from support.upstream import STANDINS
from support.waiting import reason, serves, until, until_deployment

pytestmark = pytest.mark.integration

SELECTOR = "/spec/rayClusterConfig/workerGroupSpecs/0/template/spec/nodeSelector"

EARLIER = {"KUBEFOUNDRY_PROPAGATE_LABELS": "team"}
"""A process that passes the label of no queue, as a release before it."""


def compatible(obj: Object) -> str:
    """Return the message of `ProviderCompatible`."""
    conditions = (obj.get("status") or {}).get("conditions", ())
    return next((item["message"] for item in conditions if item["type"] == "ProviderCompatible"), "")


async def create(api: Client, namespace: str, provider: str, spec: dict[str, Any], **labels: str) -> None:
    body = model_deployment("m", namespace, spec, provider=provider, labels=labels)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")


async def edit(api: Client, namespace: str, pointer: str, value: Any) -> Object:
    operation = {"op": "add", "path": pointer, "value": value}
    return await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, [operation], manager="test")


def labels_are(expected: dict[str, str]) -> Any:
    def holds(obj: Object | None) -> bool:
        own = (obj or {"metadata": {}})["metadata"].get("labels") or {}
        return {key: own[key] for key in (QUEUE_LABEL, "team") if key in own} == expected

    return holds


@pytest.mark.usefixtures("suite")
async def test_edit_of_a_label_reaches_the_upstream_object(api: Client, namespace: str) -> None:
    await create(api, namespace, "direct", CPU, team="a", **{QUEUE_LABEL: "models"})
    created = await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is not None)
    assert labels_are({QUEUE_LABEL: "models"})(created)

    for labels in ({QUEUE_LABEL: "other"}, {}, {QUEUE_LABEL: "models"}):
        await edit(api, namespace, "/metadata/labels", labels)
        await until(api, DEPLOYMENTS, "m", namespace, labels_are(labels))


async def test_label_of_an_older_model_waits_for_a_spec_edit(
    suite: Suite, api: Client, namespace: str
) -> None:
    with restarted(suite.components["kuberay"], EARLIER):
        await create(api, namespace, "kuberay", GPU)
        await until_deployment(api, "m", namespace, serves)
        await edit(api, namespace, "/metadata/labels", {QUEUE_LABEL: "models"})

    told = await until_deployment(api, "m", namespace, lambda obj: "did not pass" in compatible(obj))
    assert labels_are({})(await api.get(RAY_SERVICES, "m", namespace))
    assert "set annotation kubefoundry.ai/refresh to another value" in compatible(told)

    await edit(api, namespace, "/spec/engine/contextLength", 4096)
    await until(api, RAY_SERVICES, "m", namespace, labels_are({QUEUE_LABEL: "models"}))
    await edit(api, namespace, "/metadata/labels", {QUEUE_LABEL: "other"})
    await until(api, RAY_SERVICES, "m", namespace, labels_are({QUEUE_LABEL: "other"}))


async def test_kaito_refuses_no_older_model_with_the_label_of_a_queue(
    suite: Suite, api: Client, namespace: str
) -> None:
    with restarted(suite.components["kaito"], EARLIER):
        await create(api, namespace, "kaito", GPU, **{QUEUE_LABEL: "models"})
        await until_deployment(api, "m", namespace, serves)

    told = await until_deployment(api, "m", namespace, lambda obj: "will refuse" in compatible(obj))
    assert reason(told, "ProviderCompatible") == "CompatibilityVerified"
    drift = [{"op": "replace", "path": "/resource/count", "value": 2}]
    await api.json_patch(WORKSPACES, "m", namespace, drift, manager="kubectl-edit")
    await until(api, WORKSPACES, "m", namespace, lambda obj: (obj or {})["resource"].get("count") == 1)
    assert labels_are({})(await api.get(WORKSPACES, "m", namespace))

    await edit(api, namespace, "/spec/engine/contextLength", 4096)
    await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderCompatible") == "Unsupported"
    )
    await edit(api, namespace, "/metadata/labels", {})
    await until_deployment(api, "m", namespace, serves)


@pytest.mark.usefixtures("suite")
async def test_edit_keeps_foreign_entries_in_queued_worker_groups(api: Client, namespace: str) -> None:
    await create(api, namespace, "kuberay", GPU, **{QUEUE_LABEL: "models"})
    await until_deployment(api, "m", namespace, serves)
    placement = [{"op": "add", "path": SELECTOR, "value": {"example.com/pool": "gpu"}}]
    await api.json_patch(RAY_SERVICES, "m", namespace, placement, manager="kueue")

    edited = await edit(api, namespace, "/spec/engine/contextLength", 4096)
    generation = edited["metadata"]["generation"]
    model = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: serves(obj) and obj["status"]["observedGeneration"] == generation,
    )

    live = await api.get(RAY_SERVICES, "m", namespace)
    [group] = live["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    assert "4096" in live["spec"]["serveConfigV2"]
    assert group["template"]["spec"]["nodeSelector"] == {"example.com/pool": "gpu"}
    assert "others added" not in model["status"]["message"]
    assert await notes(api, namespace, "DriftDetected") == []


@pytest.mark.usefixtures("suite")
async def test_entries_of_others_are_reported_without_a_queue(api: Client, namespace: str) -> None:
    await create(api, namespace, "kuberay", GPU)
    await until_deployment(api, "m", namespace, serves)
    placement = [{"op": "add", "path": SELECTOR, "value": {"example.com/pool": "gpu"}}]

    await api.json_patch(RAY_SERVICES, "m", namespace, placement, manager="kubectl-edit")

    await until_deployment(api, "m", namespace, lambda obj: "others added" in obj["status"]["message"])


async def test_wait_is_reported_in_the_words_of_a_workload(fresh: Suite, api: Client, namespace: str) -> None:
    install_crd(fresh, yaml.safe_load((STANDINS / "kuberay.yaml").read_text()))
    fresh.start("core", "selector", "kuberay")
    await create(api, namespace, "kuberay", GPU, **{QUEUE_LABEL: "models"})
    service = await until(api, RAY_SERVICES, "m", namespace, lambda obj: obj is not None)
    assert service is not None

    install_crd(fresh, workload_crd())
    workload = await api.create(WORKLOADS, waiting(namespace, service), manager="kueue")
    await until_message(api, namespace, "RayService 'm' waits for quota in queue models: 1 GPU more needed")
    await api.delete(WORKLOADS, "m", namespace, uid=workload["metadata"]["uid"])

    await until_message(api, namespace, "waiting for the KubeRay operator")


async def until_message(api: Client, namespace: str, beginning: str) -> None:
    """Wait until the status message begins with these words."""
    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: (obj.get("status") or {}).get("message", "").startswith(beginning),
    )


def waiting(namespace: str, owner: Object) -> Object:
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    meta = {key: owner["metadata"][key] for key in ("name", "uid")}
    condition = {"type": "QuotaReserved", "status": "False", "message": "1 GPU more needed"}
    return {
        "apiVersion": WORKLOADS.api_version,
        "kind": WORKLOADS.kind,
        "metadata": {"name": "m", "namespace": namespace, "ownerReferences": [{**reference, **meta}]},
        "spec": {"queueName": "models"},
        "status": {"conditions": [condition]},
    }


def workload_crd() -> Object:
    """Return a CRD of Workloads without a schema and without a status subresource."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": WORKLOADS.version, "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": WORKLOADS.crd,
            "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in for tests"},
        },
        "spec": {
            "group": WORKLOADS.group,
            "names": {"plural": WORKLOADS.plural, "kind": WORKLOADS.kind},
            "scope": "Namespaced",
            "versions": [{**version, "schema": {"openAPIV3Schema": anything}}],
        },
    }
