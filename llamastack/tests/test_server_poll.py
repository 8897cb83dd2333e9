"""Asking a server what it runs: answers, silence, and asking again; a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_llamastack.server_poll import ServerPoll
from kubefoundry_sdk.runtime.store import Key

KEY = ("team", "chat")
PROVIDER = {"api": "inference", "provider_id": "echo", "provider_type": "remote::echo", "config": {}}


@pytest.fixture
def listed() -> list[dict[str, Any]]:
    """What the server lists."""
    return [PROVIDER]


@pytest.fixture
async def url(listed: list[dict[str, Any]]) -> AsyncIterator[str]:
    async def providers(_: web.Request) -> web.StreamResponse:
        return web.json_response({"data": listed})

    async def version(_: web.Request) -> web.StreamResponse:
        return web.json_response({"version": "0.7.3"})

    app = web.Application()

    async def elsewhere(_: web.Request) -> web.StreamResponse:
        raise web.HTTPFound("/v1/providers")

    app.add_routes([web.get("/v1/providers", providers), web.get("/v1/version", version)])
    app.add_routes([web.get("/led/v1/providers", elsewhere), web.get("/led/v1/version", version)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def first_answer(asked: str) -> ServerPoll:
    told: asyncio.Queue[Key] = asyncio.Queue()
    poll = ServerPoll(told.put_nowait)
    work = asyncio.create_task(poll.run())
    poll.follow(KEY, asked, pods="1 of 1")
    async with asyncio.timeout(10):
        assert await told.get() == KEY
    work.cancel()
    return poll


async def test_what_a_server_lists_is_told_once(url: str) -> None:
    answer = (await first_answer(url)).answer(KEY)

    assert answer is not None
    assert answer.version == "0.7.3"
    assert [item["provider_id"] for item in answer.providers or ()] == ["echo"]


async def test_a_silent_server_is_a_problem_with_its_address() -> None:
    answer = (await first_answer("http://127.0.0.1:9")).answer(KEY)

    assert answer is not None
    assert answer.providers is None
    assert "http://127.0.0.1:9" in answer.problem


async def test_a_server_that_is_gone_is_forgotten(url: str) -> None:
    poll = await first_answer(url)

    poll.follow(KEY, None, pods="")

    assert poll.answer(KEY) is None


async def test_other_pods_behind_the_address_are_asked_at_once(
    url: str, listed: list[dict[str, Any]]
) -> None:
    told: asyncio.Queue[Key] = asyncio.Queue()
    poll = ServerPoll(told.put_nowait)
    work = asyncio.create_task(poll.run())
    async with asyncio.timeout(10):
        poll.follow(KEY, url, pods="old")
        await told.get()
        listed.clear()
        poll.follow(KEY, url, pods="old and new")
        between = poll.answer(KEY)
        await told.get()
    work.cancel()

    after = poll.answer(KEY)
    assert between is not None
    assert between.providers
    assert after is not None
    assert after.providers == []


async def test_a_server_does_not_lead_the_operator_elsewhere(url: str) -> None:
    """Its image is the user's, the operator's network is not."""
    poll = await first_answer(f"{url}/led")

    answer = poll.answer(KEY)

    assert answer is not None
    assert answer.providers is None
    assert "302" in answer.problem
