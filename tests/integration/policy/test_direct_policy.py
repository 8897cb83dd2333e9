"""With the optional policy, provider direct writes only what it created, and no pod that reaches its node."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import NAMESPACE as SYSTEM
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, SERVICES, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.suites import running_suite
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


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """Provider direct with its policy. In the package's suite, the selector would list it in the tests of others."""
    with running_suite(tmp_path_factory.mktemp("direct")) as made:
        made.plane.kubectl("apply", "-k", str(ROOT / "manifests" / "direct-policy"))
        made.start("core", "direct")
        yield made


@pytest.fixture
async def provider(suite: Suite, namespace: str, tmp_path: Path) -> Path:
    """Kubeconfig of the provider's own account, once its policy is in force."""
    kubeconfig = account_kubeconfig(suite.plane, SYSTEM, "kubefoundry-provider-direct", tmp_path)
    await until_refused(kubeconfig, DEPLOYMENTS, in_namespace(FOREIGN, namespace))
    return kubeconfig


def in_namespace(manifest: Object, namespace: str) -> Object:
    manifest = copy.deepcopy(manifest)
    manifest["metadata"]["namespace"] = namespace
    return manifest


async def model_with_deployment(api: Client, namespace: str) -> Object:
    """Create a model, wait until provider direct has created its Deployment, and return the model."""
    body = model_deployment("m", namespace, GPU, provider="direct")
    created = await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is not None)
    return created


async def until_gone(api: Client, namespace: str) -> Object | None:
    return await until(api, DEPLOYMENTS, "m", namespace, lambda obj: obj is None)


async def test_model_is_created_edited_and_deleted(api: Client, namespace: str, provider: Path) -> None:
    created = await model_with_deployment(api, namespace)
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
    await model_with_deployment(api, namespace)
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


def in_container(name: str, **settings: Any) -> dict[str, Any]:
    return {name: [{"name": "c", "image": "example.com/c:1", **settings}]}


def projected(source: dict[str, Any]) -> dict[str, Any]:
    return {"volumes": [{"name": "token", "projected": {"sources": [source]}}]}


TOKEN = {"serviceAccountToken": {"path": "token"}}
SETTINGS: dict[str, dict[str, Any]] = {
    "network": {"hostNetwork": True},
    "processes": {"hostPID": True},
    "memory": {"hostIPC": True},
    "files": {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]},
    "privileged": in_container("containers", securityContext={"privileged": True}),
    "capability": in_container("containers", securityContext={"capabilities": {"add": ["SYS_ADMIN"]}}),
    "capability of init container": {
        **in_container("containers"),
        "initContainers": [
            {
                "name": "i",
                "image": "example.com/i:1",
                "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}},
            }
        ],
    },
    "port": in_container("containers", ports=[{"containerPort": 22, "hostPort": 22}]),
    "token": {"serviceAccountName": "admin", "automountServiceAccountToken": True},
    "default token": {"automountServiceAccountToken": None},
    "projected token": projected(TOKEN),
}
"""Settings of a pod that reach its node, or a ServiceAccount's token."""

ADMITTED: dict[str, dict[str, Any]] = {
    "no settings": {},
    "dropped capability": in_container("containers", securityContext={"capabilities": {"drop": ["ALL"]}}),
    "container port": in_container("containers", ports=[{"containerPort": 8000}]),
    "account without token": {"serviceAccountName": "admin"},
    "projected file": projected({"configMap": {"name": "c"}}),
}


def owned(namespace: str, settings: dict[str, Any]) -> Object:
    """Return a Deployment of the provider with these settings of its pods."""
    manifest = in_namespace(FOREIGN, namespace)
    manifest["metadata"] |= {
        "labels": {"kubefoundry.ai/provider": "direct"},
        "ownerReferences": [
            {"apiVersion": "kubefoundry.ai/v1alpha1", "kind": "ModelDeployment", "name": "m", "uid": "1"}
        ],
    }
    manifest["spec"]["template"]["spec"] |= {"automountServiceAccountToken": False, **settings}
    return manifest


@pytest.mark.parametrize("setting", SETTINGS)
async def test_pod_that_reaches_its_node_is_refused(namespace: str, provider: Path, setting: str) -> None:
    words = await refusal(provider, DEPLOYMENTS, owned(namespace, SETTINGS[setting]))

    assert "may not create Deployment" in words
    assert "its pods get settings that reach their node or a ServiceAccount's token: " in words


@pytest.mark.parametrize("missing", ["labels", "ownerReferences"])
async def test_new_object_needs_the_label_and_an_owner(namespace: str, provider: Path, missing: str) -> None:
    manifest = owned(namespace, {})
    del manifest["metadata"][missing]

    words = await refusal(provider, DEPLOYMENTS, manifest)

    assert "provider direct may not create Deployment" in words
    assert (
        "a new object needs both the label kubefoundry.ai/provider=direct and a ModelDeployment as owner"
        in words
    )


@pytest.mark.parametrize("setting", ADMITTED)
async def test_pod_like_those_of_the_provider_is_admitted(
    namespace: str, provider: Path, setting: str
) -> None:
    assert await refusal(provider, DEPLOYMENTS, owned(namespace, ADMITTED[setting])) == ""


NETWORK = {"op": "add", "path": "/spec/template/spec/hostNetwork", "value": True}
ROOT_FILES = {"op": "replace", "path": "/spec/template/spec/volumes/0/hostPath/path", "value": "/"}
REPLICAS = {"op": "replace", "path": "/spec/replicas", "value": 1}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [(REPLICAS, ""), (NETWORK, "token: hostNetwork. Ask"), (ROOT_FILES, "token: hostPath '/'. Ask")],
    ids=["replicas", "network", "other files"],
)
async def test_setting_of_others_stays_and_none_is_added(
    api: Client, namespace: str, provider: Path, operation: Object, expected: str
) -> None:
    settings = {"volumes": [{"name": "logs", "hostPath": {"path": "/var/log"}}]}
    manifest = owned(namespace, settings)
    # The garbage collector deletes an object whose owner does not exist. The label is enough.
    del manifest["metadata"]["ownerReferences"]
    stored = await api.create(DEPLOYMENTS, manifest, manager="test")

    words = await changed_refusal(provider, DEPLOYMENTS, stored, operation)

    assert (expected in words) if expected else words == ""


async def test_model_is_scaled_when_others_added_a_setting(
    suite: Suite, api: Client, namespace: str, provider: Path
) -> None:
    await model_with_deployment(api, namespace)
    volume = {"name": "logs", "hostPath": {"path": "/var/log"}}
    added = {"op": "add", "path": "/spec/template/spec/volumes/-", "value": volume}
    await api.json_patch(DEPLOYMENTS, "m", namespace, [added], manager="others")

    suite.plane.kubectl("scale", "modeldeployments/m", "-n", namespace, "--replicas=2")

    scaled = await until(
        api, DEPLOYMENTS, "m", namespace, lambda obj: obj is not None and obj["spec"]["replicas"] == 2
    )
    assert scaled is not None
    names = [volume["name"] for volume in scaled["spec"]["template"]["spec"]["volumes"]]
    assert "logs" in names
