"""A ModelDeployment as a provider of a real server: its engine is a program behind its Service."""

from __future__ import annotations

from typing import Final

import pytest
import yaml

from kubefoundry_llamastack.names import LLSD, REPLICA_SETS
from kubefoundry_local.suite import Suite
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from pods.images import model_server
from pods.llama_stack.distributions import (
    STARTED,
    Server,
    behind,
    server,
    serving_pod,
    stack,
    until_answers,
    until_ready,
    until_rolled_out,
)
from support.audit import AuditLog
from support.deployments import GPU, model_deployment
from support.llamastack import reason, until_status

pytestmark = pytest.mark.integration

MODEL: Final = "tiny-8b"
"""As the engine serves it."""

RESOLVED: Final = "ModelDeploymentsResolved"


@pytest.fixture(scope="session")
def engine(node: Node, tmp_path_factory: pytest.TempPathFactory) -> None:
    node.add(model_server.image(tmp_path_factory.mktemp("engine")))


async def say(api: Client, namespace: str, ready: bool, service: str, port: int) -> None:
    """The ModelDeployment's status, as its provider writes it."""
    condition = {
        "type": "Ready",
        "status": str(ready),
        "reason": "DeploymentReady" if ready else "Progressing",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    endpoint = {"endpoint": {"service": service, "port": port}} if ready else {}
    status = {"phase": "Running" if ready else "Deploying", "conditions": [condition], **endpoint}
    body = {
        "apiVersion": MODEL_DEPLOYMENTS.api_version,
        "kind": MODEL_DEPLOYMENTS.kind,
        "metadata": {"name": "llama", "namespace": namespace},
        "status": status,
    }
    await api.apply_status(MODEL_DEPLOYMENTS, body, manager="test-provider")


async def replica_sets(api: Client, namespace: str) -> set[str]:
    """Names of the ReplicaSets that there have been."""
    items, _ = await api.list(REPLICA_SETS, namespace)
    return {item["metadata"]["name"] for item in items}


async def test_it_answers_and_follows_its_model_to_another_provider(
    api: Client, suite: Suite, examples: None, engine: None, namespace: str
) -> None:
    engines = [
        *model_server.objects("first", namespace, MODEL, 80),
        *model_server.objects("second", namespace, MODEL, 8000),
    ]
    suite.plane.kubectl("create", "-f", "-", input=yaml.safe_dump_all(engines))
    wait = ("wait", "pod", "--all", "-n", namespace, "--for=condition=Ready", f"--timeout={STARTED:.0f}s")
    suite.plane.kubectl(*wait)
    for name in ("first", "second"):
        await until_answers(await behind(api, name, namespace), "/v1/models")
    await api.create(MODEL_DEPLOYMENTS, model_deployment("llama", namespace, GPU), manager="user")
    await say(api, namespace, True, "first", 80)
    reference = {"name": "llama", "providerId": "local"}
    await api.create(LLSD, stack("chat", namespace, modelDeployments=[reference]), manager="user")
    await until_ready(api, "chat", namespace)

    before = await (await server(api, "chat", namespace)).chat(f"local/{MODEL}", "ping")
    log, first = AuditLog(suite), await replica_sets(api, namespace)
    for _ in range(20):
        await say(api, namespace, False, "first", 80)
        await until_status(
            api, "chat", namespace, lambda status: reason(status, RESOLVED) == "HoldingLastEndpoint"
        )
        await say(api, namespace, True, "first", 80)
        await until_status(api, "chat", namespace, lambda status: reason(status, RESOLVED) == "Resolved")
    writes = log.writes("llamastack", namespace, "deployments")

    await say(api, namespace, True, "second", 8000)
    await until_rolled_out(api, "chat", namespace, generation=2)
    pod = await serving_pod(api, "chat", namespace)
    after = await Server.of(pod).chat(f"local/{MODEL}", "ping")

    assert (before.status, before.body) == (200, "first heard ping")
    assert writes == []
    assert (after.status, after.body) == (200, "second heard ping")
    second = await replica_sets(api, namespace)
    assert (len(first), len(second - first), len(first - second)) == (1, 1, 0)
