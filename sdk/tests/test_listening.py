"""A port with too many connections still answers other clients, and limits the open ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest
from aiohttp import web

from kubefoundry_sdk._runtime.listening import bind
from kubefoundry_simulators.certificate import self_signed, tls
from support.waiting import SECONDS

MOST = 8


async def here(request: web.Request) -> web.Response:
    return web.Response(text="here")


@asynccontextmanager
async def answering(secure: bool) -> AsyncIterator[str]:
    """URL of a server that holds MOST connections."""
    app = web.Application()
    app.router.add_get("/", here)
    runner = web.AppRunner(app)
    await runner.setup()
    bound = bind(0, most=MOST)
    context = tls(*self_signed("127.0.0.1")) if secure else None
    await web.SockSite(runner, bound, ssl_context=context).start()
    try:
        yield f"http{'s' if secure else ''}://127.0.0.1:{bound.getsockname()[1]}/"
    finally:
        await runner.cleanup()


async def ended(reader: asyncio.StreamReader) -> None:
    """Returns once the server has ended the connection."""
    with suppress(ConnectionError):
        await reader.read()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("secure", "sent"),
    [
        pytest.param(True, b"", id="TLS, nothing said"),
        pytest.param(True, b"\x16\x03\x01", id="TLS, a handshake begun"),
        pytest.param(False, b"", id="plain, nothing said"),
        pytest.param(False, b"GET / HTTP/1.1\r\nHost: x\r\n", id="plain, a request begun"),
    ],
)
async def test_who_holds_many_connections_keeps_nobody_out(secure: bool, sent: bytes) -> None:
    async with answering(secure) as url, asyncio.timeout(SECONDS):
        port = int(url.rsplit(":", 1)[1].strip("/"))
        held = []
        for _ in range(3 * MOST):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            held.append((reader, writer))

        async with aiohttp.ClientSession() as session, session.get(url, ssl=False) as answer:
            assert await answer.text() == "here"

        # All but those that it holds are ended, the oldest first; the last of them made room for the question.
        await asyncio.gather(*(ended(reader) for reader, _ in held[: 2 * MOST + 1]))
        assert not any(reader.at_eof() for reader, _ in held[2 * MOST + 1 :])
        for _, writer in held:
            writer.close()


async def test_connections_that_ended_make_room() -> None:
    async with answering(secure=False) as url, asyncio.timeout(SECONDS):
        port = int(url.rsplit(":", 1)[1].strip("/"))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3 * MOST):
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                assert await answer.text() == "here"

        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"here")
        writer.close()
