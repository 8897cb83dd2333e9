"""The kit reads the ports of the subject itself, whatever they redirect to."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from kubefoundry_conformance.cluster import registering
from support.wire import ok, wire


async def test_redirect_is_not_the_subjects_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with wire(lambda asked: ok()) as elsewhere:

        async def readyz(_: web.Request) -> web.Response:
            return web.Response(status=302, headers={"Location": f"{elsewhere.client.server}/readyz"})

        async def metrics_page(_: web.Request) -> web.Response:
            return web.Response(text="a 1")

        app = web.Application()
        app.router.add_get("/readyz", readyz)
        app.router.add_get("/metrics", metrics_page)
        async with TestServer(app) as server:
            monkeypatch.setenv("http_proxy", elsewhere.client.server)
            read = registering.own_answer
            with pytest.raises(OSError, match="/readyz answers 302 Found"):
                await asyncio.to_thread(read, int(server.port or 0), "/readyz")
            metrics = await asyncio.to_thread(read, int(server.port or 0), "/metrics")

    assert metrics == "a 1"
    assert elsewhere.asked == []


async def test_endless_answer_is_not_read_to_the_end() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b"a 1\n" * 250_000)

    app = web.Application()
    app.router.add_get("/metrics", endless)
    async with TestServer(app) as server:
        with pytest.raises(OSError, match="/metrics answers with more than 16 MiB"):
            await asyncio.to_thread(registering.own_answer, int(server.port or 0), "/metrics")
