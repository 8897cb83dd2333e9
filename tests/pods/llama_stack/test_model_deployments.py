"""A ModelDeployment as a provider of a real server: its engine is a program behind its Service."""

from __future__ import annotations

from typing import Final

import pytest

from kubefoundry_llamastack.names import LLSD, REPLICA_SETS
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from pods.llama_stack.distributions import (
    Server,
    server,
    serving_pod,
    stack,
    until_ready,
    until_rolled_out,
)
from pods.llama_stack.engines import MODEL, report, start
from support.audit import AuditLog
from support.deployments import GPU, model_deployment
from support.llamastack import reason, until_status

pytestmark = pytest.mark.integration

RESOLVED: Final = "ModelDeploymentsResolved"


async def replica_sets(api: Client, namespace: str) -> set[str]:
    """Names of the ReplicaSets that there have been."""
    items, _ = await api.list(REPLICA_SETS, namespace)
    return {item["metadata"]["name"] for item in items}


async def test_it_answers_and_follows_its_model_to_another_provider(
    api: Client, suite: Suite, examples: None, engine: None, namespace: str
) -> None:
    await start(api, suite, namespace, {"first": 80, "second": 8000})
    await api.create(MODEL_DEPLOYMENTS, model_deployment("llama", namespace, GPU), manager="user")
    await report(api, namespace, True, "first", 80)
    reference = {"name": "llama", "providerId": "local"}
    await api.create(LLSD, stack("chat", namespace, modelDeployments=[reference]), manager="user")
    await until_ready(api, "chat", namespace)

    before = await (await server(api, "chat", namespace)).chat(f"local/{MODEL}", "ping")
    log, first = AuditLog(suite), await replica_sets(api, namespace)
    for _ in range(20):
        await report(api, namespace, False, "first", 80)
        await until_status(
            api, "chat", namespace, lambda status: reason(status, RESOLVED) == "HoldingLastEndpoint"
        )
        await report(api, namespace, True, "first", 80)
        await until_status(api, "chat", namespace, lambda status: reason(status, RESOLVED) == "Resolved")
    writes = log.writes("llamastack", namespace, "deployments")

    await report(api, namespace, True, "second", 8000)
    await until_rolled_out(api, "chat", namespace, generation=2)
    pod = await serving_pod(api, "chat", namespace)
    after = await Server.of(pod).chat(f"local/{MODEL}", "ping")

    assert (before.status, before.body) == (200, "first heard ping")
    assert writes == []
    assert (after.status, after.body) == (200, "second heard ping")
    second = await replica_sets(api, namespace)
    assert (len(first), len(second - first), len(first - second)) == (1, 1, 0)
