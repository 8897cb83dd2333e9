"""A provider inside an operator that is written in kopf, as a process with its own ServiceAccount."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from kubefoundry_local.suite import Suite, end
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS
from kubefoundry_sdk.cluster.client import Client
from support.deployments import GPU, model_deployment
from support.waiting import phase, until, until_deployment
from support.widgets import EXAMPLES, WIDGETS, install

pytestmark = pytest.mark.integration

PROGRAM = EXAMPLES / "kopf-provider" / "operator_with_provider.py"


def kubeconfig(suite: Suite, folder: Path) -> Path:
    """The ServiceAccount's token in the form in which kopf reads it outside a cluster."""
    context = {"cluster": "c", "user": "u"}
    cluster = {"server": suite.plane.server, "certificate-authority": str(folder / "ca.crt")}
    file = folder / "kubeconfig"
    file.write_text(
        yaml.safe_dump(
            {
                "current-context": "x",
                "contexts": [{"name": "x", "context": context}],
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {"token": (folder / "token").read_text()}}],
            }
        )
    )
    return file


async def test_a_provider_inside_a_kopf_operator(fresh: Suite, api: Client, namespace: str) -> None:
    inside = install(fresh)
    # what the operator of the example needs for itself
    fresh.plane.kubectl(
        *("create", "clusterrole", "widget-operator", "--verb=patch", "--resource=widgets.example.com/status")
    )
    account = "--serviceaccount=kubefoundry-system:kubefoundry-provider-widgets"
    fresh.plane.kubectl(
        *("create", "clusterrolebinding", "widget-operator", "--clusterrole=widget-operator", account)
    )
    inside.environment["KUBECONFIG"] = str(kubeconfig(fresh, inside.log.parent))
    inside.command = [sys.executable, "-m", "kopf", "run", "--standalone", "-A", str(PROGRAM)]
    fresh.start("core")
    inside.start()

    body = model_deployment("m", namespace, GPU, provider="widgets")
    await until(api, PROVIDER_CONFIGS, "widgets", None, lambda obj: obj)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")

    running = await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    assert running["status"]["endpoint"] == {"service": "m", "port": 8000}
    assert not [name for name in running["metadata"].get("annotations", {}) if "kopf" in name]
    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=running["metadata"]["uid"])
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    await until(api, WIDGETS, "m", namespace, lambda obj: obj is None)
    assert inside.process is not None
    assert end(inside.process) == 0
    inside.process = None
