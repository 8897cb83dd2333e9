"""Tests that the operator writes no child before it knows the OGXServers, and never waits for them in vain."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_llamastack import names
from kubefoundry_llamastack.names import LLSD, OGX_SERVERS
from support.llamastack_operator import operator_on
from support.wire import Asked, events, ok, refusal

LISTED: dict[str, Any] = {"metadata": {"resourceVersion": "5"}}
CR: dict[str, Any] = {
    "apiVersion": LLSD.api_version,
    "kind": LLSD.kind,
    "metadata": {"name": "old", "namespace": "team", "uid": "u", "generation": 1, "resourceVersion": "5"},
    "spec": {"server": {"distribution": {"name": "starter"}}},
}


def crd(version: str) -> dict[str, Any]:
    versions = [{"name": version, "served": True}]
    return {"metadata": {"name": OGX_SERVERS.crd, "resourceVersion": "5"}, "spec": {"versions": versions}}


def usual(request: Asked) -> web.Response:
    """Serve the CR and nothing else. Store every apply."""
    if "watch" in request.query:
        return events(("BOOKMARK", LISTED))
    if request.method in ("PATCH", "POST"):
        return ok({**request.body, "metadata": {**CR["metadata"], **request.body["metadata"]}})
    return ok({**LISTED, "items": [CR] if request.path.endswith(f"/{LLSD.plural}") else []})


def asks_for_crd(request: Asked) -> bool:
    return OGX_SERVERS.crd in request.query.get("fieldSelector", "")


def writes_deployment(request: Asked) -> bool:
    return request.method in ("PATCH", "POST") and "/deployments" in request.path


async def test_no_child_is_written_before_ogx_servers_are_listed() -> None:
    adopter = {
        "apiVersion": OGX_SERVERS.api_version,
        "kind": OGX_SERVERS.kind,
        "metadata": {
            "name": "next",
            "namespace": "team",
            "uid": "v",
            "resourceVersion": "5",
            "annotations": dict.fromkeys(names.ADOPTIONS, "old"),
        },
    }
    failures = iter([503] * 4)
    statuses: asyncio.Queue[Asked] = asyncio.Queue()

    def answer(request: Asked) -> web.Response:
        if request.path.endswith("/status"):
            statuses.put_nowait(request)
        if "watch" not in request.query and asks_for_crd(request):
            return ok({**LISTED, "items": [crd(OGX_SERVERS.version)]})
        if "watch" not in request.query and request.path.endswith(f"/{OGX_SERVERS.plural}"):
            if code := next(failures, None):
                return refusal(code, "ServiceUnavailable")
            return ok({**LISTED, "items": [adopter]})
        return usual(request)

    async with operator_on(answer) as server:
        first = await statuses.get()

    assert "AdoptedBySuccessor" in str(first.body)
    assert not any(map(writes_deployment, server.asked))


FORBIDDEN = (403, "Forbidden")


@pytest.mark.parametrize(
    ("definition", "crd_refusal", "list_refusal"),
    [
        (None, None, None),
        (None, FORBIDDEN, None),
        (crd(OGX_SERVERS.version), None, FORBIDDEN),
        (crd("v1"), None, (404, "NotFound")),
    ],
    ids=["not installed", "CRD is unreadable", "objects are unreadable", "another version"],
)
async def test_children_are_written_when_ogx_servers_cannot_be_listed(
    definition: Any, crd_refusal: Any, list_refusal: Any
) -> None:
    written = asyncio.Event()

    def answer(request: Asked) -> web.Response:
        if writes_deployment(request):
            written.set()
        if asks_for_crd(request):
            if crd_refusal:
                return refusal(*crd_refusal)
            if "watch" not in request.query:
                return ok({**LISTED, "items": [definition] if definition else []})
        if list_refusal and request.path.endswith(f"/{OGX_SERVERS.plural}"):
            return refusal(*list_refusal)
        return usual(request)

    async with operator_on(answer):
        await written.wait()
