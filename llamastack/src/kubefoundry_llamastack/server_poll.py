"""Asks running servers what they run: /v1/providers and /v1/version, beside the reconciles and never in one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import aiohttp

from kubefoundry_llamastack.report import Answer
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.runtime.store import Key

EVERY: Final = 60.0
AGAIN: Final = 5.0
"""Seconds between two questions to a server that answers, and to one that does not yet."""

DEADLINE: Final = 5.0
AT_ONCE: Final = 8
LIMIT: Final = 1 << 20
"""Seconds that a server may take, servers asked at the same time, and bytes of an answer that are read."""


@dataclass(slots=True)
class _Known:
    url: str
    pods: str
    due: float
    answer: Answer | None = None
    asking: bool = False


class ServerPoll:
    """`changed` is called with the key of a CR whose server has something new to say."""

    def __init__(self, changed: Callable[[Key], None]) -> None:
        self._changed = changed
        self._known: dict[Key, _Known] = {}
        self._wake = asyncio.Event()

    def answer(self, key: Key) -> Answer | None:
        """What the CR's server said last."""
        known = self._known.get(key)
        return known.answer if known else None

    def follow(self, key: Key, url: str | None, *, pods: str) -> None:
        """Asks the server at the URL from now on; None: no more, because no pod serves.

        pods: another value says that others serve than before: they are asked at once.
        """
        known = self._known.get(key)
        if url is None:
            self._known.pop(key, None)
        elif known is None or (known.url, known.pods) != (url, pods):
            # an answer that is on its way from the pods before is no longer waited for
            answer = known.answer if known and known.url == url else None
            self._known[key] = _Known(url, pods, asyncio.get_running_loop().time(), answer)
            self._wake.set()

    async def run(self) -> None:
        """Asks until cancelled."""
        timeout = aiohttp.ClientTimeout(total=DEADLINE)
        connector = aiohttp.TCPConnector(limit=AT_ONCE, force_close=True)
        async with (
            aiohttp.ClientSession(timeout=timeout, connector=connector) as session,
            asyncio.TaskGroup() as group,
        ):
            while True:
                now = asyncio.get_running_loop().time()
                for key, known in self._known.items():
                    if known.due <= now and not known.asking:
                        known.asking = True
                        group.create_task(self._ask(session, key, known))
                waits = [known.due - now for known in self._known.values() if not known.asking]
                self._wake.clear()
                try:
                    async with asyncio.timeout(min(waits, default=EVERY)):
                        await self._wake.wait()
                except TimeoutError:
                    pass

    async def _ask(self, session: aiohttp.ClientSession, key: Key, known: _Known) -> None:
        answer = await ask(session, known.url)
        known.asking = False
        known.due = asyncio.get_running_loop().time() + (AGAIN if answer.problem else EVERY)
        self._wake.set()
        if self._known.get(key) is known and answer != known.answer:
            known.answer = answer
            self._changed(key)


async def ask(session: aiohttp.ClientSession, url: str) -> Answer:
    """One question; what went wrong is part of the answer."""
    try:
        listed = await _json(session, f"{url}/v1/providers")
        version = await _json(session, f"{url}/v1/version")
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        return Answer(problem=f"The server does not answer at {url}: {error or type(error).__name__}")
    items = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(items, list):
        return Answer(problem=f"The server's answer at {url}/v1/providers is none of llama-stack's")
    told = version.get("version") if isinstance(version, dict) else None
    return Answer([row for item in items if (row := provider(item))], str(told or ""))


async def _json(session: aiohttp.ClientSession, url: str) -> Any:
    # The image is the user's: it must not lead the operator to any address that only the operator reaches.
    async with session.get(url, allow_redirects=False) as response:
        if response.status != HTTPStatus.OK:
            raise ValueError(f"it answers {response.status} {response.reason}")
        raw = bytearray()
        async for chunk in response.content.iter_any():
            raw += chunk
            if len(raw) > LIMIT:
                raise ValueError(f"the answer of {url} is longer than {LIMIT} bytes")
        return json.loads(raw)


def provider(item: Any) -> Object | None:
    """A provider as the status lists it; None for anything else."""
    if not isinstance(item, dict) or not all(
        item.get(key) for key in ("api", "provider_id", "provider_type")
    ):
        return None
    health = item.get("health") or {}
    config = item.get("config")
    return {
        "api": str(item["api"]),
        "provider_id": str(item["provider_id"]),
        "provider_type": str(item["provider_type"]),
        "config": config if isinstance(config, dict) else {},
        "health": {"status": str(health.get("status", "")), "message": str(health.get("message", ""))},
    }
