"""An overlay moves KubeFoundry to another namespace, and each process works there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kubefoundry_local.apply import apply
from kubefoundry_local.control_plane import ROOT
from kubefoundry_local.ports import free_port
from kubefoundry_local.suite import Suite, account_files, local_webhooks, process_of
from kubefoundry_sdk._api.kinds import LEASES, MODEL_DEPLOYMENTS, SECRETS, Object
from kubefoundry_sdk._cluster.client import Client
from support.admission import until_refused_by_webhook
from support.deployments import CPU, model_deployment
from support.suites import running_suite
from support.waiting import reason, until, until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.apart]

ELSEWHERE = "ml-platform"


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Suite]:
    with running_suite(tmp_path) as made:
        yield made


async def test_overlay_namespace_is_used_by_every_process(
    suite: Suite, api: Client, namespace: str, tmp_path: Path
) -> None:
    built = overlaid(suite, tmp_path / "overlay")
    port = free_port()
    apply(suite.plane, [local_webhooks(one, port) for one in built if one["kind"] != "Deployment"])
    webhooks = {"KUBEFOUNDRY_WEBHOOK_PORT": str(port), "KUBEFOUNDRY_WEBHOOK_HOST": "127.0.0.1"}

    for deployment in (one for one in built if one["kind"] == "Deployment"):
        name = deployment["metadata"]["name"]
        folder = tmp_path / name
        folder.mkdir()
        token = suite.plane.token(ELSEWHERE, name)
        files = account_files(folder, ELSEWHERE, token, suite.plane.authority(), suite.plane.server)
        component = process_of(name, deployment, folder, files | (webhooks if name.endswith("core") else {}))
        suite.components[name] = component
        component.start()
    for component in suite.components.values():
        component.wait_ready()

    for name in suite.components:
        await until(api, LEASES, name, ELSEWHERE, lambda obj: obj is not None)
    await until(api, SECRETS, "kubefoundry-core-tls", ELSEWHERE, lambda obj: obj is not None)
    await until_refused_by_webhook(api, namespace)
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, CPU), manager="test")
    chosen = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderSelected") == "AutoSelected"
    )
    assert chosen["status"]["provider"]["name"] == "direct"


def overlaid(suite: Suite, folder: Path) -> list[Object]:
    """Return the objects of an overlay that changes the namespace."""
    folder.mkdir()
    manifests = os.path.relpath((ROOT / "manifests").resolve(), folder.resolve())
    text = yaml.safe_dump({"namespace": ELSEWHERE, "resources": [manifests]})
    (folder / "kustomization.yaml").write_text(text)
    return list(yaml.safe_load_all(suite.plane.kubectl("kustomize", str(folder)).stdout))
