"""Tests the poll of servers: answers, silence, and repeated requests to a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_llamastack import server_poll
from kubefoundry_llamastack.server_poll import ServerPoll, poll, provider
from kubefoundry_sdk._api.foreign_json import encode, nested
from kubefoundry_sdk._runtime.store import Key
from support.waiting import SECONDS

KEY = ("team", "chat")
PROVIDER = {"api": "inference", "provider_id": "echo", "provider_type": "remote::echo", "config": {}}


@pytest.fixture
def listed() -> list[dict[str, Any]]:
    """Return the server's list of providers."""
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


async def first_answer(url: str) -> ServerPoll:
    reported: asyncio.Queue[Key] = asyncio.Queue()
    poll = ServerPoll(reported.put_nowait)
    work = asyncio.create_task(poll.run())
    poll.follow(KEY, url, pods="1 of 1")
    async with asyncio.timeout(SECONDS):
        assert await reported.get() == KEY
    work.cancel()
    return poll


async def test_server_poll_reports_each_answer_once(url: str) -> None:
    answer = (await first_answer(url)).answer(KEY)

    assert answer is not None
    assert answer.version == "0.7.3"
    assert [item["provider_id"] for item in answer.providers or ()] == ["echo"]


async def test_server_poll_names_address_of_silent_server() -> None:
    answer = (await first_answer("http://127.0.0.1:9")).answer(KEY)

    assert answer is not None
    assert answer.providers is None
    assert "http://127.0.0.1:9" in answer.problem


async def test_server_poll_forgets_removed_server(url: str) -> None:
    poll = await first_answer(url)

    poll.follow(KEY, None, pods="")

    assert poll.answer(KEY) is None


async def test_server_poll_polls_new_pods_at_once(url: str, listed: list[dict[str, Any]]) -> None:
    reported: asyncio.Queue[Key] = asyncio.Queue()
    poll = ServerPoll(reported.put_nowait)
    work = asyncio.create_task(poll.run())
    async with asyncio.timeout(SECONDS):
        poll.follow(KEY, url, pods="old")
        await reported.get()
        listed.clear()
        poll.follow(KEY, url, pods="old and new")
        between = poll.answer(KEY)
        await reported.get()
    work.cancel()

    after = poll.answer(KEY)
    assert between is not None
    assert between.providers
    assert after is not None
    assert after.providers == []


async def test_server_poll_follows_no_redirect(url: str) -> None:
    """The image is the user's, but the operator's network is not."""
    poll = await first_answer(f"{url}/led")

    answer = poll.answer(KEY)

    assert answer is not None
    assert answer.providers is None
    assert "302" in answer.problem


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
ROW = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("api", "provider_id", "provider_type", "config", "health"), ANYTHING),
)


@given(ROW | ANYTHING)
def test_server_poll_row_fits_status_or_is_dropped(row: Any) -> None:
    reported = provider(row)

    assert reported is None or (
        isinstance(reported["config"], dict)
        and all(isinstance(reported[key], str) for key in ("api", "provider_id", "provider_type"))
        and all(isinstance(text, str) for text in reported["health"].values())
    )
    encode(reported)


def row(**more: Any) -> bytes:
    return encode({**PROVIDER, **more})


DEEP = b'{"a":' * 1500 + b"1" + b"}" * 1500
HOSTILE: dict[str, bytes] = {
    "health that is a word": b'{"data":[' + row(health="OK") + b"]}",
    "a list": b"[]",
    "a list of lists": b'{"data":[[],[[]],null,7]}',
    "data that is none": b'{"data":{"a":1}}',
    "1,500 levels": DEEP,
    "1,500 levels in a config": b'{"data":[' + row().replace(b'"config":{}', b'"config":' + DEEP) + b"]}",
    "50 levels in a config": b'{"data":['
    + row().replace(b'"config":{}', b'"config":' + b'{"a":' * 50 + b"1" + b"}" * 50)
    + b"]}",
    "NaN": b'{"data":[' + row().replace(b'"config":{}', b'"config":{"a":NaN,"b":[-Infinity,1e999]}') + b"]}",
    "a number of 5,000 digits": b'{"data":[' + row().replace(b"{}", b'{"a":' + b"9" * 5000 + b"}") + b"]}",
    "half a surrogate pair": b'{"data":[' + row(provider_id="@").replace(b"@", b"\\ud83d") + b"]}",
    "another coding": b'{"data":[\xff\xfe]}',
    "brackets without end": b"[" * 500_000,
    "a page": b"<html>",
    "nothing": b"",
    "names without end": b'{"data":[' + row(api="x" * 900_000) + b"]}",
    "settings without end": b'{"data":[' + row(config={"a": "x" * 900_000}) + b"]}",
    "providers without end": b'{"data":[' + b",".join([row()] * 9000) + b"]}",
    "a megabyte and more": b'{"data":[' + b" " * (1 << 20) + b"]}",
}


@asynccontextmanager
async def saying(body: bytes, **headers: str) -> AsyncIterator[str]:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, headers=headers)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
async def test_server_poll_answer_fits_status_for_any_reply(body: bytes) -> None:
    async with saying(body) as url:
        answer = await poll(url)

    assert answer.problem or answer.providers is not None
    assert not nested(answer.providers, 40)
    assert len(encode([answer.problem, answer.version, answer.providers])) < 2**20


async def test_server_poll_refuses_compressed_answer() -> None:
    """A megabyte of zeros is a kilobyte when compressed, and the limit counts received bytes."""
    async with saying(b"\x1f\x8b" + b"\0" * 100, **{"Content-Encoding": "gzip"}) as url:
        answer = (await first_answer(url)).answer(KEY)

    assert answer is not None
    assert "compressed" in answer.problem


async def test_server_poll_continues_after_internal_error(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(item: Any) -> Any:
        if item["provider_id"] == "bad":
            raise RecursionError("too deep")
        return item

    monkeypatch.setattr(server_poll, "provider", fails)
    reported: asyncio.Queue[Key] = asyncio.Queue()
    poll = ServerPoll(reported.put_nowait)
    work = asyncio.create_task(poll.run())
    async with asyncio.timeout(SECONDS), saying(b'{"data":[' + row(provider_id="bad") + b"]}") as bad:
        poll.follow(("team", "bad"), bad, pods="1 of 1")
        assert await reported.get() == ("team", "bad")
        poll.follow(KEY, url, pods="1 of 1")
        assert await reported.get() == KEY
    work.cancel()

    answer = poll.answer(("team", "bad"))
    assert answer is not None
    assert answer.problem.endswith("cannot be read: RecursionError")
