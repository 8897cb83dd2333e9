"""A stranger sends anything to core's port: the process stays alive within its memory and answers the API server."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from itertools import cycle

import aiohttp
import pytest

from kubefoundry_local.suite import Component, Suite
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._runtime.listening import MOST
from support.admission import BY_WEBHOOK, refusal, until_refused_by_webhook
from support.deployments import CPU
from support.hostile_reviews import PATHS, RAW, UNFINISHED, Posted, requests
from support.memory import limit, most_held, open_files

pytestmark = pytest.mark.integration

UNFIT = {**CPU, "engine": {**CPU["engine"], "contextLength": 1, "args": {"ctx-size": "2"}}}
"""Only the webhook says no to it."""

ANSWERS = {200, 400, 404, 405, 411, 413, 415, 417, 501, 503}
AT_ONCE = 16


@pytest.fixture
async def core(suite: Suite, api: Client, namespace: str) -> AsyncIterator[Component]:
    """Alive and within its memory before and after, the same process, and asked by the API server."""
    core = suite.components["core"]
    before = core.process
    await until_refused_by_webhook(api, namespace, UNFIT)
    yield core
    assert core.process is before and before is not None and core.running
    assert (await refusal(api, namespace, UNFIT)).startswith(BY_WEBHOOK)
    assert most_held(before.pid) < limit("core")


def port(core: Component) -> int:
    return int(core.environment["KUBEFOUNDRY_WEBHOOK_PORT"])


def anybody() -> ssl.SSLContext:
    """Whose certificate it is does not matter here."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def test_requests_of_every_kind(core: Component, api: Client, namespace: str) -> None:
    kinds = requests()
    paths, answers = cycle(PATHS), Counter[str]()
    room = asyncio.Semaphore(AT_ONCE)
    root = f"https://127.0.0.1:{port(core)}"

    async with aiohttp.ClientSession(auto_decompress=False) as session:

        async def post(posted: Posted) -> None:
            where = posted.path or next(paths)
            async with room:
                try:
                    async with session.request(
                        posted.method, root + where, data=posted.body, headers=posted.headers, ssl=False
                    ) as answer:
                        assert answer.status in ANSWERS, (posted, answer.status)
                        if answer.status == 200:
                            assert (await answer.json())["response"]["allowed"] in (True, False)
                        answers[str(answer.status)] += 1
                except aiohttp.ClientError:
                    # Refused before all of it was sent.
                    answers["ended"] += 1

        for posted in kinds.values():
            sent = asyncio.gather(*(post(one) for one in posted))
            assert (await refusal(api, namespace, UNFIT)).startswith(BY_WEBHOOK)
            await sent

    print({kind: len(posted) for kind, posted in kinds.items()}, dict(answers))
    assert answers["200"] > 100


async def test_bytes_that_are_no_request(core: Component, api: Client, namespace: str) -> None:
    for raw in RAW:
        for context in (anybody(), None):
            reader, writer = await asyncio.open_connection("127.0.0.1", port(core), ssl=context)
            try:
                writer.write(raw)
                await writer.drain()
                if writer.can_write_eof():
                    writer.write_eof()
                    await reader.read()
            except (OSError, ssl.SSLError):
                pass
            writer.transport.abort()
            assert (await refusal(api, namespace, UNFIT)).startswith(BY_WEBHOOK)
    print(f"{2 * len(RAW)} connections with bytes that are no request")


async def test_webhook_answers_with_more_connections_than_its_limit(
    core: Component, api: Client, namespace: str
) -> None:
    held: list[asyncio.StreamWriter] = []
    context = anybody()

    async def held_open(said: bytes, secure: bool) -> None:
        try:
            _, writer = await asyncio.open_connection(
                "127.0.0.1", port(core), ssl=context if secure else None
            )
            held.append(writer)
            writer.write(said)
            await writer.drain()
        except OSError:
            # Ended by core already: others came meanwhile.
            pass

    try:
        for said in UNFINISHED:
            for secure in (True, False):
                for _ in range(MOST // 4 // AT_ONCE):
                    await asyncio.gather(*(held_open(said, secure) for _ in range(AT_ONCE)))
                assert (await refusal(api, namespace, UNFIT)).startswith(BY_WEBHOOK)
        assert core.process
        # Those that it has ended are closed a moment later.
        assert open_files(core.process.pid) < 1.5 * MOST < len(held)
    finally:
        for writer in held:
            writer.transport.abort()
    print(f"{len(held)} connections begun, of which core holds {MOST}")
