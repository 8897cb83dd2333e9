"""A leader is frozen in the middle of a turn while another replica takes its Lease."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from kubefoundry_local.ports import free_port
from kubefoundry_local.suite import Component, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
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


@contextmanager
def another(suite: Suite, folder: Path) -> Iterator[Component]:
    """A second replica of the Dynamo provider, which speaks to the API server itself."""
    first = suite.components["dynamo"]
    account = folder / "account"
    shutil.copytree(first.environment["KUBEFOUNDRY_SERVICE_ACCOUNT_DIR"], account)
    (account / "ca.crt").write_bytes((folder / "ca.crt").read_bytes())
    health, metrics = free_port(), free_port()
    environment = {
        **first.environment,
        "KUBEFOUNDRY_SERVICE_ACCOUNT_DIR": str(account),
        "KUBERNETES_SERVICE_PORT": str(urlsplit(suite.plane.server).port),
        "KUBEFOUNDRY_IDENTITY": "second",
        "KUBEFOUNDRY_HEALTH_PORT": str(health),
        "KUBEFOUNDRY_METRICS_PORT": str(metrics),
    }
    made = replace(
        first,
        environment=environment,
        log=folder / "second.log",
        health_port=health,
        metrics_port=metrics,
        process=None,
    )
    made.start()
    try:
        yield made
    finally:
        made.stop()


async def test_it_writes_nothing_of_what_it_had_decided(
    suite: Suite, api: Client, namespace: str, proxy: Proxy, tmp_path: Path
) -> None:
    component = suite.components["dynamo"]
    assert component.process is not None
    frozen, thawed, wrote = asyncio.Event(), asyncio.Event(), []

    def rule(request: web.Request) -> Fault | None:
        assert component.process is not None
        if request.method == "GET" or "leases" in request.path:
            return None
        if thawed.is_set():
            # What arrives before may have been sent before it froze.
            wrote.append(f"{request.method} {request.path}")
        elif not frozen.is_set() and request.path.endswith("/modeldeployments/m"):
            # Its finalizer: it wakes with the answer to this, and what comes next is the upstream object.
            component.process.send_signal(signal.SIGSTOP)
            frozen.set()
        return None

    proxy.rule = rule
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider="dynamo"), manager="test"
    )
    async with asyncio.timeout(SECONDS):
        await frozen.wait()
    said = len(component.log.read_text())
    with another(suite, tmp_path):
        await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
        thawed.set()
        component.process.send_signal(signal.SIGCONT)
        # Its looks at the Lease go through the proxy, one every two seconds.
        async with asyncio.timeout(SECONDS):
            while "competing for it again" not in component.log.read_text()[said:]:
                await proxy.until(_another_request(proxy))

        assert wrote == []
        assert component.running


def _another_request(proxy: Proxy) -> Callable[[Counter[str]], bool]:
    """That one more request has passed than until now."""
    before = proxy.answered["passed"]
    return lambda counts: counts["passed"] > before
