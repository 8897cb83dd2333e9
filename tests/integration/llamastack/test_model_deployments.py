"""Tests ModelDeployments as providers: waited for, then latched. Only another endpoint that is ready replaces
pods."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from kubefoundry_llamastack.names import DEPLOYMENTS, LLSD
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.audit import AuditLog
from support.deployments import GPU, model_deployment
from support.llamastack import condition_of, deployment, edit, llsd, reason, until_object, until_status
from support.roles import until_allowed

pytestmark = pytest.mark.integration

VARIABLE = "KUBEFOUNDRY_MD_LLAMA_8B_URL"
RESOLVED = "ModelDeploymentsResolved"


def served(ready: bool, port: int = 80, service: str = "llama-8b") -> Object:
    """Return the status of a ModelDeployment, as its provider writes it."""
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": "DeploymentReady" if ready else "Progressing",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    endpoint = {"endpoint": {"service": service, "port": port}} if ready else {}
    return {"phase": "Running" if ready else "Deploying", "conditions": [condition], **endpoint}


async def say(api: Client, namespace: str, status: Object, name: str = "llama-8b") -> None:
    body = {
        "apiVersion": MODEL_DEPLOYMENTS.api_version,
        "kind": MODEL_DEPLOYMENTS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "status": status,
    }
    await api.apply_status(MODEL_DEPLOYMENTS, body, manager="test-provider")


def uses(namespace: str, **reference: Any) -> Object:
    return llsd("chat", namespace, modelDeployments=[{"name": "llama-8b", **reference}])


def url(live: Object) -> str:
    [container] = live["spec"]["template"]["spec"]["containers"]
    return str({item["name"]: item.get("value") for item in container["env"]}[VARIABLE])


async def test_nothing_is_deployed_before_models_resolve(api: Client, stack: Suite, namespace: str) -> None:
    await api.create(LLSD, uses(namespace, config={"max_tokens": 100}), manager="user")
    missing = await until_status(
        api, "chat", namespace, lambda status: reason(status, RESOLVED) == "NotFound"
    )
    await api.create(MODEL_DEPLOYMENTS, model_deployment("llama-8b", namespace, GPU), manager="user")
    await until_status(api, "chat", namespace, lambda status: reason(status, RESOLVED) == "NotReady")
    with pytest.raises(ApiError, match="404"):
        await api.get(DEPLOYMENTS, "chat", namespace)

    await say(api, namespace, served(True))

    live = await deployment(api, "chat", namespace)
    status = await until_status(api, "chat", namespace, lambda status: reason(status, RESOLVED) == "Resolved")
    pod = live["spec"]["template"]["spec"]
    merge = pod["initContainers"][-1]["command"]
    handed = json.loads(base64.b64decode("".join(merge[merge.index("--input") + 1 :])))
    assert missing["phase"] == "Pending"
    assert url(live) == f"http://llama-8b.{namespace}.svc:80/v1"
    assert handed["modelDeployments"] == [
        {"providerId": "llama-8b", "urlVariable": VARIABLE, "config": {"max_tokens": 100}}
    ]
    [row] = status["modelDeployments"]
    assert (row["ready"], row["endpoint"]) == (True, url(live))


async def test_model_readiness_changes_write_nothing(api: Client, stack: Suite, namespace: str) -> None:
    await api.create(MODEL_DEPLOYMENTS, model_deployment("llama-8b", namespace, GPU), manager="user")
    await say(api, namespace, served(True))
    await api.create(LLSD, uses(namespace), manager="user")
    before = await deployment(api, "chat", namespace)
    await until_status(api, "chat", namespace, lambda status: reason(status, RESOLVED) == "Resolved")
    log = AuditLog(stack)

    for _ in range(20):
        await say(api, namespace, served(False))
        await until_status(
            api, "chat", namespace, lambda status: reason(status, RESOLVED) == "HoldingLastEndpoint"
        )
        await say(api, namespace, served(True))
        await until_status(api, "chat", namespace, lambda status: reason(status, RESOLVED) == "Resolved")
    writes = log.writes("llamastack", namespace, "deployments")
    await say(api, namespace, served(True, port=8000))

    after = await until_object(
        api, DEPLOYMENTS, "chat", namespace, lambda obj: obj["metadata"]["generation"] > 1
    )
    assert writes == []
    assert before["metadata"]["generation"] == 1
    assert after["metadata"]["generation"] == 2
    assert url(after) == f"http://llama-8b.{namespace}.svc:8000/v1"


async def test_model_endpoint_survives_model_and_restart(api: Client, stack: Suite, namespace: str) -> None:
    await api.create(MODEL_DEPLOYMENTS, model_deployment("llama-8b", namespace, GPU), manager="user")
    await say(api, namespace, served(True))
    await api.create(LLSD, uses(namespace), manager="user")
    await deployment(api, "chat", namespace)

    gone = await api.get(MODEL_DEPLOYMENTS, "llama-8b", namespace)
    await api.delete(MODEL_DEPLOYMENTS, "llama-8b", namespace, uid=gone["metadata"]["uid"])
    held = await until_status(
        api, "chat", namespace, lambda status: reason(status, RESOLVED) == "HoldingLastEndpoint"
    )
    stack.components["llamastack"].stop()
    stack.components["llamastack"].start()
    stack.components["llamastack"].wait_ready()
    await edit(api, "chat", namespace, lambda cr: cr["spec"]["server"].update(workers=2))

    live = await until_object(
        api, DEPLOYMENTS, "chat", namespace, lambda obj: obj["metadata"]["generation"] > 1
    )
    assert "does not exist" in condition_of(held, RESOLVED)["message"]
    assert url(live) == f"http://llama-8b.{namespace}.svc:80/v1"
    assert live["metadata"]["generation"] == 2


async def test_model_base_url_is_refused_by_schema(api: Client, stack: Suite, namespace: str) -> None:
    with pytest.raises(ApiError, match="base_url follows the ModelDeployment's endpoint"):
        await api.create(LLSD, uses(namespace, config={"base_url": "http://x"}), manager="user")


async def test_model_deployments_may_be_installed_later(api: Client, idle: Suite) -> None:
    idle.plane.kubectl("delete", "crd", MODEL_DEPLOYMENTS.crd)
    idle.start("llamastack")
    await api.create(LLSD, uses("default"), manager="user")
    await until_status(api, "chat", "default", lambda status: reason(status, RESOLVED) == "CRDNotInstalled")

    idle.install_ground()

    await until_status(api, "chat", "default", lambda status: reason(status, RESOLVED) == "NotFound")


async def test_operator_works_without_role_for_model_deployments(api: Client, idle: Suite) -> None:
    component = idle.install("llamastack")
    role = "kubefoundry-llamastack-modeldeployments"
    idle.plane.kubectl("delete", "clusterrolebinding", role)
    until_allowed(idle.plane, "llamastack", "list", MODEL_DEPLOYMENTS.crd, allowed=False)
    component.start()
    component.wait_ready()

    await api.create(LLSD, llsd("plain", "default"), manager="user")
    await api.create(LLSD, uses("default"), manager="user")

    await deployment(api, "plain", "default")
    await until_status(api, "chat", "default", lambda status: reason(status, RESOLVED) == "CRDNotInstalled")
