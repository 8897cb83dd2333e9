"""Core, the selector and all providers in one kopf operator deploy as separate processes do, and end with it."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kubefoundry_local.suite import NAMESPACE, Suite, manifest
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.metrics import scrape
from support.suites import install_crd
from support.upstream import standin
from support.waiting import serves, until, until_deployment

pytestmark = pytest.mark.integration

COMPONENTS: Final = ("core", "selector", "direct", "dynamo", "kaito", "kuberay")
ACCOUNT: Final = {"kind": "ServiceAccount", "name": "kubefoundry-operator", "namespace": NAMESPACE}


def operator() -> list[dict[str, Any]]:
    """Return the manifests of the components, with one ServiceAccount and one Deployment that runs them in kopf."""
    documents: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT["name"], "namespace": NAMESPACE},
        }
    ]
    modules = []
    for name in COMPONENTS:
        modules += ["-m", f"kubefoundry_{name}.kopf"]
        for document in manifest(name):
            if document["kind"] in ("ClusterRoleBinding", "RoleBinding"):
                document["subjects"] = [ACCOUNT]
            if document["kind"] not in ("Deployment", "ServiceAccount"):
                documents.append(document)
    container = {"command": ["kopf"], "args": ["run", "--standalone", "--all-namespaces", *modules]}
    pod = {"serviceAccountName": ACCOUNT["name"], "containers": [container]}
    return [*documents, {"kind": "Deployment", "spec": {"template": {"spec": pod}}}]


async def test_components_share_one_kopf_operator(fresh: Suite, api: Client, namespace: str) -> None:
    for provider in ("kuberay", "dynamo"):
        install_crd(fresh, standin(provider).document)
    fresh.simulate("kuberay", "dynamo")
    component = fresh.install("core", documents=operator())
    component.start()
    component.wait_ready()

    async def deploy(name: str, **more: Any) -> Object:
        await api.create(MODEL_DEPLOYMENTS, model_deployment(name, namespace, GPU, **more), manager="test")
        return await until_deployment(api, name, namespace, serves)

    named = await deploy("named", provider="dynamo")
    chosen = await deploy("chosen")
    await api.delete(MODEL_DEPLOYMENTS, "named", namespace, uid=named["metadata"]["uid"])
    await until(api, MODEL_DEPLOYMENTS, "named", namespace, lambda obj: obj is None)
    selections = {
        labels for (name, labels) in scrape(component) if name == "kubefoundry_provider_selection_total"
    }

    assert named["status"]["provider"]["name"] == "dynamo"
    assert chosen["status"]["provider"]["name"] in ("kuberay", "dynamo")
    assert selections == {
        frozenset({("provider", "dynamo"), ("reason", "ExplicitlySelected")}),
        frozenset({("provider", chosen["status"]["provider"]["name"]), ("reason", "AutoSelected")}),
    }
    assert "kopf" not in str(chosen["metadata"]), "kopf adds no finalizers and annotations"
    assert component.stop() == 0
