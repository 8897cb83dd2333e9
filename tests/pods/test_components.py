"""Our images in the Deployments of our manifests become ready with a read-only root, and core's serves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import yaml

from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.suite import Suite
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, PODS, Object
from kubefoundry_sdk._cluster.client import Client
from pods.images import components
from support.admission import until_refused_by_webhook
from support.refused_specs import AGGREGATED, changed
from support.tested_images import COMPONENTS
from support.waiting import until

pytestmark = pytest.mark.integration

MANIFESTS: Final = {
    "core": "parts/core.yaml",
    "selector": "provider-selector.yaml",
    "dashboard": "dashboard/dashboard.yaml",
    "llamastack": "llamastack/llamastack.yaml",
    **{
        f"provider-{path.stem}": f"providers/{path.name}"
        for path in (ROOT / "manifests/providers").glob("*.yaml")
    },
}
NAMESPACE: Final = "kubefoundry-system"
SERVING: Final = "deployments,mutatingwebhookconfigurations,validatingwebhookconfigurations"


@pytest.fixture
async def deployment(
    request: pytest.FixtureRequest, suite: Suite, node: Node, api: Client
) -> AsyncIterator[Object]:
    """The ready Deployment of a component, from its manifest."""
    manifest = ROOT / "manifests" / MANIFESTS[request.param]
    [document] = [
        one for one in yaml.safe_load_all(manifest.read_text()) if one and one["kind"] == "Deployment"
    ]
    [container] = document["spec"]["template"]["spec"]["containers"]
    node.add(components.image(request.param, container["image"]))
    await asyncio.to_thread(suite.plane.kubectl, "apply", "-f", str(manifest))
    name = document["metadata"]["name"]
    ready = await until(api, DEPLOYMENTS, name, NAMESPACE, _is_available)
    assert ready is not None
    yield ready
    # The permissions stay: our operator, which these tests share, may have the same.
    selector = f"app.kubernetes.io/name={name}"
    await asyncio.to_thread(suite.plane.kubectl, "delete", SERVING, "-l", selector, "-n", NAMESPACE)
    node.remove_image(container["image"])


def _is_available(obj: Object | None) -> bool:
    return bool(obj and obj.get("status", {}).get("availableReplicas"))


@pytest.mark.parametrize("deployment", COMPONENTS, indirect=True)
async def test_image_is_ready_without_restarts(deployment: Object, api: Client) -> None:
    labels = deployment["spec"]["selector"]["matchLabels"]
    selector = {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())}

    pods, _ = await api.list(PODS, NAMESPACE, selector=selector)

    running: list[dict[str, Any]] = [status for pod in pods for status in pod["status"]["containerStatuses"]]
    [context] = {
        container["securityContext"]["readOnlyRootFilesystem"]
        for pod in pods
        for container in pod["spec"]["containers"]
    }
    assert [(status["ready"], status["restartCount"]) for status in running] == [(True, 0)]
    assert context is True


@pytest.mark.parametrize("deployment", ["core"], indirect=True)
async def test_image_of_core_refuses_contradictions(deployment: Object, namespace: str, api: Client) -> None:
    contradiction = changed(AGGREGATED, engine__contextLength=8192, engine__args={"max-model-len": "4096"})

    await until_refused_by_webhook(api, namespace, contradiction)

    pods, _ = await api.list(PODS, NAMESPACE)
    assert any(pod["metadata"]["name"].startswith("kubefoundry-core-") for pod in pods)
