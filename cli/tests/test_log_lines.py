"""A log whose lines arrive slowly: the limit for the whole log, for each line, or none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from kubefoundry_cli import pods
from kubefoundry_cli.cluster import Session
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import Credentials

POD = {
    "metadata": {"name": "pod", "namespace": "models"},
    "spec": {"nodeName": "n", "containers": [{"name": "c"}]},
}
LINES = 5
PAUSE = 0.6
"""Seconds before each line of the log."""


@asynccontextmanager
async def slow_log() -> AsyncIterator[Session]:
    """Yield a session with a server that has LINES lines for each request."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for number in range(LINES):
            await asyncio.sleep(PAUSE)
            await response.write(f"{number}\n".encode())
        return response

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    async with TestServer(application) as server:
        account = Credentials(str(server.make_url("")).rstrip("/"), None, lambda: "t")
        async with Client(account, user_agent="test") as client:
            yield Session(client, "models")


@pytest.mark.parametrize(
    ("follow", "is_whole", "seconds", "is_complete"),
    [
        pytest.param(False, True, 4 * PAUSE, False, id="whole log"),
        pytest.param(False, False, 4 * PAUSE, True, id="each line"),
        pytest.param(False, False, PAUSE / 3, False, id="first line"),
        pytest.param(True, False, PAUSE / 3, True, id="followed"),
    ],
)
async def test_slow_log_ends_at_its_limit(
    monkeypatch: pytest.MonkeyPatch, follow: bool, is_whole: bool, seconds: float, is_complete: bool
) -> None:
    monkeypatch.setattr(pods, "LOG_SECONDS", seconds)
    count, reason = 0, ""

    async with slow_log() as session:
        try:
            async for _ in pods.log_lines(session, POD, "c", "", follow=follow, is_whole=is_whole):
                count += 1
        except pods.NoLog as error:
            reason = str(error)

    assert (count == LINES) == is_complete
    assert reason.startswith("the rest of the log did not arrive within") != is_complete
