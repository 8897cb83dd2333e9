"""A leader is cut off from the API server for longer than its Lease."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import LEASES, MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.proxy import Fault, Proxy, behind
from support.waiting import SECONDS, phase, until_deployment

pytestmark = pytest.mark.integration


@pytest.fixture
async def proxy(suite: Suite, tmp_path: Path) -> AsyncIterator[Proxy]:
    """The suite's Dynamo provider restarted behind a proxy, and as it was afterwards."""
    async with behind(suite, "dynamo", tmp_path) as made:
        yield made


async def test_cut_off_component_writes_nothing_and_resumes(
    suite: Suite, api: Client, namespace: str, proxy: Proxy
) -> None:
    component = suite.components["dynamo"]
    assert component.process is not None
    process, said = component.process.pid, len(component.log.read_text())

    proxy.rule = lambda request: Fault(403, "Forbidden")
    proxy.cut_watches()
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider="dynamo"), manager="test"
    )
    async with asyncio.timeout(SECONDS):
        while not lost(component.log.read_text()[said:]):
            await proxy.until(_another(proxy))
    held = await api.get(LEASES, "kubefoundry-provider-dynamo", "kubefoundry-system")
    proxy.rule = lambda request: None

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    again = await api.get(LEASES, "kubefoundry-provider-dynamo", "kubefoundry-system")
    assert component.running and component.process is not None and component.process.pid == process
    assert again["spec"]["holderIdentity"] == held["spec"]["holderIdentity"]
    assert component.log.stat().st_size - said < 100_000


def lost(log: str) -> bool:
    """Whether a log of JSON lines says that the Lease is lost and stood for again."""
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{") and line.endswith("}")]
    return any(
        line["message"] == "lease lost, competing for it again" and "renewed in time" in line["error"]
        for line in lines
    )


def _another(proxy: Proxy) -> Callable[[Counter[str]], bool]:
    """That one more request was refused than until now."""
    before = proxy.answered["403"]
    return lambda counts: counts["403"] > before
