"""A restart of the API server ends no process. The suite has its own control plane, so other tests go on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.suites import running_suite
from support.waiting import phase, until_deployment

pytestmark = pytest.mark.integration


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Suite]:
    """Everything that the case needs, started."""
    with running_suite(tmp_path, "dynamo", "kuberay") as made:
        made.start("core", "dynamo", "kuberay")
        yield made


async def test_restarted_api_server_is_caught_up_with(fresh: Suite, api: Client, namespace: str) -> None:
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("before", namespace, GPU, provider="dynamo"), manager="test"
    )

    await asyncio.to_thread(fresh.plane.restart_api_server)
    await until_deployment(api, "before", namespace, lambda obj: phase(obj) == "Running")
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("after", namespace, GPU, provider="kuberay"), manager="test"
    )

    await until_deployment(api, "after", namespace, lambda obj: phase(obj) == "Running")
    assert [name for name, component in fresh.components.items() if not component.running] == []
