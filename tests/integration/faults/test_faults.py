"""Failures between a component and the API server cost time, never correctness."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from aiohttp import web

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import GPU, model_deployment
from support.proxy import Fault, Proxy, behind
from support.waiting import SECONDS, phase, until, until_deployment

pytestmark = pytest.mark.integration

GRAPHS = Kind("nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment")


@pytest.fixture
async def proxy(suite: Suite, tmp_path: Path) -> AsyncIterator[Proxy]:
    """The suite's Dynamo provider restarted behind a proxy, and as it was afterwards."""
    async with behind(suite, "dynamo", tmp_path) as made:
        yield made


def first(
    count: int, matches: Callable[[web.Request], bool], fault: Fault
) -> Callable[[web.Request], Fault | None]:
    """The fault for the first `count` requests that match."""
    left = count

    def rule(request: web.Request) -> Fault | None:
        nonlocal left
        if left and matches(request):
            left -= 1
            return fault
        return None

    return rule


def to_upstream(request: web.Request) -> bool:
    return request.method == "PATCH" and "dynamographdeployments" in request.path


def to_status(request: web.Request) -> bool:
    return request.method == "PATCH" and request.path.endswith("/m/status")


def finalizer(request: web.Request) -> bool:
    return request.method == "PATCH" and request.path.endswith("/modeldeployments/m")


PASSING = (
    (to_upstream, Fault(500, "InternalError")),
    (to_upstream, Fault(429, "TooManyRequests", retry_after=1)),
    (to_upstream, Fault(503, "ServiceUnavailable")),
    (to_status, Fault(500, "InternalError")),
    (to_status, Fault(429, "TooManyRequests", retry_after=1)),
    (finalizer, Fault(500, "InternalError")),
    # As a ResourceQuota answers, of which no watch tells.
    (to_upstream, Fault(409, "Conflict")),
    (to_status, Fault(409, "Conflict")),
    (finalizer, Fault(409, "Conflict")),
)


async def test_passing_fault_is_overcome(suite: Suite, api: Client, namespace: str, proxy: Proxy) -> None:
    for matches, fault in PASSING:
        proxy.answered.clear()
        proxy.rule = first(2, matches, fault)

        made = await api.create(
            MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider="dynamo"), manager="test"
        )

        await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
        assert proxy.answered[str(fault.code)] == 2, (matches, fault)
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])
        await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)


def reset(request: web.Request) -> None:
    """Break the connection."""
    assert request.transport is not None
    request.transport.abort()


def cut_off(request: web.Request) -> None:
    """Answer with a part of an object."""
    raise web.HTTPOk(text='{"kind": "Dyn', content_type="application/json")


def bad_gateway(request: web.Request) -> None:
    """Answer as a load balancer that has lost the server."""
    raise web.HTTPBadGateway


@pytest.mark.parametrize("answer", [reset, cut_off, bad_gateway])
async def test_lost_answer_causes_no_second_object(
    suite: Suite, api: Client, namespace: str, proxy: Proxy, answer: Callable[[web.Request], None]
) -> None:
    log, lost, all_lost = AuditLog(suite), Counter[str](), asyncio.Event()

    def done(request: web.Request) -> None:
        """Lose the first two answers of each kind of write, which the server has carried out."""
        for matches in (finalizer, to_upstream, to_status):
            if f"/namespaces/{namespace}/" in request.path and matches(request):
                lost[matches.__name__] += 1
                if len(lost) == 3:
                    all_lost.set()
                if lost[matches.__name__] <= 2:
                    answer(request)

    proxy.done = done
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider="dynamo"), manager="test"
    )

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    # The watch may show the status before its answer is lost.
    async with asyncio.timeout(SECONDS):
        await all_lost.wait()
    requests = log.requests("provider-dynamo", namespace, GRAPHS.plural)
    assert [entry["responseStatus"]["code"] for entry in requests].count(201) == 1


async def test_retry_after_is_obeyed(suite: Suite, api: Client, namespace: str, proxy: Proxy) -> None:
    times: list[float] = []

    def rule(request: web.Request) -> Fault | None:
        # The provider may still write for models of earlier tests.
        if not to_upstream(request) or f"/namespaces/{namespace}/" not in request.path:
            return None
        times.append(asyncio.get_running_loop().time())
        return Fault(429, "TooManyRequests", retry_after=2) if len(times) == 1 else None

    proxy.rule = rule
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider="dynamo"), manager="test"
    )

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    assert times[1] - times[0] >= 2


async def test_changes_during_a_cut_watch_are_seen(
    suite: Suite, api: Client, namespace: str, proxy: Proxy
) -> None:
    body = model_deployment("m", namespace, GPU, provider="dynamo")
    made = await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")

    # Nothing of the API server is seen while the deletion happens.
    proxy.rule = lambda request: Fault(500, "InternalError") if request.method == "GET" else None
    assert proxy.cut_watches() > 0
    failed = proxy.answered["500"]
    await proxy.until(lambda counts: counts["500"] > failed)
    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])
    proxy.rule = lambda request: None

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    await until(api, GRAPHS, "m", namespace, lambda obj: obj is None)
