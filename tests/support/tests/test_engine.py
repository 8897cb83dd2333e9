"""Tests the simulated inference engine."""

from __future__ import annotations

import asyncio

import pytest

from support.engine import Engine, listening, own_address
from support.waiting import SECONDS

BODY = b'{"messages": []}'
HEAD = (
    "POST /v1/chat/completions HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\n"
    f"Content-Length: {len(BODY)}\r\n\r\n"
).encode()


async def test_engine_answers_once_it_has_the_whole_question() -> None:
    engine = Engine("model")
    engine.words.put_nowait("Hello")
    async with listening(engine) as port:
        reader, writer = await asyncio.open_connection(own_address(), port)

        writer.write(HEAD)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.readline(), 0.5)
        writer.write(BODY)
        async with asyncio.timeout(SECONDS):
            answer = await reader.readuntil(b"Hello")

        engine.words.put_nowait(None)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 200")
