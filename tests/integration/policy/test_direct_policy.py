"""With the optional policy, provider direct writes only what it created, and no pod that reaches its node."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import NAMESPACE as SYSTEM
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, SERVICES, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.users import account_kubeconfig, changed_refusal, refusal, until_refused
from support.waiting import until, until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.needs_kubernetes("1.30", "ValidatingAdmissionPolicy")]

FOREIGN: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "foreign"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "foreign"}},
        "template": {
            "metadata": {"labels": {"app": "foreign"}},
            "spec": {"containers": [{"name": "c", "image": "example.com/c:1"}]},
        },
    },
}


@pytest.fixture
async def provider(suite: Suite, namespace: str, tmp_path: Path) -> Path:
    """Kubeconfig of the provider's own account, once its policy is in force."""
    suite.plane.kubectl("apply", "-k", str(ROOT / "manifests" / "direct-policy"))
    suite.start("direct")
    kubeconfig = account_kubeconfig(suite.plane, SYSTEM, "kubefoundry-provider-direct", tmp_path)
    await until_refused(kubeconfig, DEPLOYMENTS, in_namespace(FOREIGN, namespace))
    return kubeconfig


def in_namespace(manifest: Object, namespace: str) -> Object:
    manifest = copy.deepcopy(manifest)
    manifest["metadata"]["namespace"] = namespace
    return manifest


async def until_gone(api: Client, namespace: str) -> Object | None:
    return await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is None)


async def test_model_is_created_edited_and_deleted(api: Client, namespace: str, provider: Path) -> None:
    created = await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider="direct"), manager="test"
    )
    await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is not None)
    replicas = {"op": "replace", "path": "/spec/scaling/replicas", "value": 2}

    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, [replicas], manager="test")

    assert await until(
        api, DEPLOYMENTS, "m", namespace, lambda obj: obj is not None and obj["spec"]["replicas"] == 2
    )
    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=created["metadata"]["uid"])
    assert await until_gone(api, namespace) is None


async def test_object_without_marks_is_named_until_it_has_the_label(
    suite: Suite, api: Client, namespace: str, provider: Path
) -> None:
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider="direct"), manager="test"
    )
    await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is not None)
    marks = [{"op": "remove", "path": f"/metadata/{field}"} for field in ("labels", "ownerReferences")]

    await api.json_patch(DEPLOYMENTS, "m", namespace, marks, manager="test")
    named = await until_deployment(
        api, "m", namespace, lambda obj: "it has neither the label" in (obj["status"].get("message") or "")
    )
    suite.plane.kubectl("label", "deployment", "m", "-n", namespace, "kubefoundry.ai/provider=direct")

    assert "provider direct may not update Deployment" in named["status"]["message"]
    assert await until(
        api, DEPLOYMENTS, "m", namespace, lambda obj: obj is not None and "ownerReferences" in obj["metadata"]
    )


async def test_object_of_others_is_neither_changed_nor_deleted(
    suite: Suite, api: Client, namespace: str, provider: Path
) -> None:
    stored = await api.create(DEPLOYMENTS, in_namespace(FOREIGN, namespace), manager="test")
    service = {"metadata": {"name": "foreign", "namespace": namespace}, "spec": {"ports": [{"port": 80}]}}
    await api.create(SERVICES, {"apiVersion": "v1", "kind": "Service", **service}, manager="test")
    replicas = {"op": "replace", "path": "/spec/replicas", "value": 1}

    changed = await changed_refusal(provider, DEPLOYMENTS, stored, replicas)
    deleted = suite.plane.kubectl(
        *("delete", "service", "foreign", "-n", namespace, "--kubeconfig", str(provider)), check=False
    )

    who = "provider direct may not {} '" + namespace + "/foreign': it has neither the label"
    assert who.format("update Deployment") in changed
    assert who.format("delete Service") in deleted.stderr


@pytest.mark.parametrize(
    ("settings", "is_refused"),
    [
        ({}, False),
        ({"hostNetwork": True}, True),
        ({"hostPID": True}, True),
        ({"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}, True),
        (
            {
                "containers": [
                    {"name": "c", "image": "example.com/c:1", "securityContext": {"privileged": True}}
                ]
            },
            True,
        ),
    ],
    ids=["no settings", "network", "processes", "files", "privileged"],
)
async def test_pod_that_reaches_its_node_is_refused(
    namespace: str, provider: Path, settings: dict[str, Any], is_refused: bool
) -> None:
    manifest = in_namespace(FOREIGN, namespace)
    manifest["metadata"] |= {
        "labels": {"kubefoundry.ai/provider": "direct"},
        "ownerReferences": [
            {"apiVersion": "kubefoundry.ai/v1alpha1", "kind": "ModelDeployment", "name": "m", "uid": "1"}
        ],
    }
    manifest["spec"]["template"]["spec"] |= settings

    words = await refusal(provider, DEPLOYMENTS, manifest)

    assert ("its pods use the host's namespaces or files, or are privileged" in words) == is_refused
    assert bool(words) == is_refused
