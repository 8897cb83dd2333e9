"""A provider restarts, and the API server's cache shows it the past: a model that was deleted and created again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU
from support.edits import running
from support.finalizers import held
from support.kinds import GRAPHS
from support.proxy import Fault, Proxy, behind
from support.waiting import SECONDS, serves, until, until_deployment
from support.wishes import change_spec

pytestmark = pytest.mark.integration


@pytest.fixture
async def proxy(suite: Suite, tmp_path: Path) -> AsyncIterator[Proxy]:
    """Restart the suite's Dynamo provider behind a proxy."""
    async with behind(suite, "dynamo", tmp_path) as made:
        yield made


async def listed(api: Client, kind: Kind, namespace: str) -> Object:
    """Return the list of a kind as the API server sends it now."""
    items, version = await api.list(kind, namespace)
    return {
        "apiVersion": kind.api_version,
        "kind": f"{kind.kind}List",
        "metadata": {"resourceVersion": version},
        "items": items,
    }


async def test_stale_list_after_a_restart_deletes_no_newer_object(
    suite: Suite, api: Client, namespace: str, proxy: Proxy
) -> None:
    first = await running(api, namespace, GPU, "dynamo")
    past = {GRAPHS.plural: await listed(api, GRAPHS, namespace)}
    async with held(api, GRAPHS, namespace):
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=first["metadata"]["uid"])
        past[MODEL_DEPLOYMENTS.plural] = await listed(api, MODEL_DEPLOYMENTS, namespace)
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    second = await running(api, namespace, GPU, "dynamo")
    graph = await api.get(GRAPHS, "m", namespace)
    component = suite.components["dynamo"]
    tried = asyncio.Event()

    def rule(request: web.Request) -> Fault | None:
        """Answer each list with the past, and refuse watches, which would show the present."""
        plural = request.path.rpartition("/")[2]
        if request.method == "DELETE" and request.path.endswith(f"/{namespace}/{GRAPHS.plural}/m"):
            tried.set()
        if request.method != "GET" or plural not in past:
            return None
        return (
            Fault(503, "ServiceUnavailable")
            if "watch" in request.query
            else Fault(200, "", body=past[plural])
        )

    await asyncio.to_thread(component.stop)
    proxy.rule = rule
    component.start()
    await asyncio.to_thread(component.wait_ready)
    async with asyncio.timeout(SECONDS):
        await tried.wait()
    proxy.rule = lambda request: None
    await change_spec(api, namespace, "/spec/scaling", {"replicas": 2})
    model = await until_deployment(api, "m", namespace, serves)

    assert model["metadata"]["uid"] == second["metadata"]["uid"]
    assert (await api.get(GRAPHS, "m", namespace))["metadata"]["uid"] == graph["metadata"]["uid"]
