"""Asks running servers what they run: /v1/providers and /v1/version, beside the reconciles and never in one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import aiohttp

from kubefoundry_llamastack.report import Answer
from kubefoundry_sdk.api.foreign_json import Unreadable, decode, encode, nested
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.runtime.store import Key

EVERY: Final = 60.0
AGAIN: Final = 5.0
"""Seconds between two questions to a server that answers, and to one that does not yet."""

DEADLINE: Final = 5.0
AT_ONCE: Final = 8
LIMIT: Final = 1 << 20
"""Seconds that a server may take, servers asked at the same time, and bytes of an answer that are read."""


TEXT: Final = 1024
DEPTH: Final = 32
CONFIG: Final = 4096
PROVIDERS: Final = 128
"""Characters of a text, levels and bytes of a provider's config, and providers that are reported: the status of a CR
has to fit into an object of 1.5 MiB, with what a server says beside all else."""

log = logging.getLogger(__name__)


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
        # A kilobyte that is compressed may be a megabyte, and does not count against LIMIT.
        headers = {"Accept-Encoding": "identity"}
        connector = aiohttp.TCPConnector(limit=AT_ONCE, force_close=True)
        async with (
            aiohttp.ClientSession(
                timeout=timeout, connector=connector, headers=headers, auto_decompress=False
            ) as session,
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
    """One question; what went wrong is part of the answer, whatever it was: the server is the user's."""
    try:
        return await _told(session, url)
    except Exception as error:
        log.exception("the answer of %s cannot be read because of an internal error", url)
        return Answer(problem=f"The server's answer at {url} cannot be read: {type(error).__name__}")


async def _told(session: aiohttp.ClientSession, url: str) -> Answer:
    try:
        listed = await _json(session, f"{url}/v1/providers")
        version = await _json(session, f"{url}/v1/version")
    except Unreadable as error:
        return Answer(problem=f"The server's answer at {url} is not JSON: {error}")
    except TimeoutError:
        return Answer(
            problem=f"The server at {url} accepts requests but does not answer within {DEADLINE:.0f} s"
        )
    except (aiohttp.ClientError, OSError, ValueError) as error:
        what = str(error)[:TEXT] or type(error).__name__
        return Answer(problem=f"The server does not answer at {url}: {what}")
    items = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(items, list):
        return Answer(problem=f"The server's answer at {url}/v1/providers is not llama-stack's")
    told = version.get("version") if isinstance(version, dict) else None
    return Answer([row for item in items[:PROVIDERS] if (row := provider(item))], _text(told))


async def _json(session: aiohttp.ClientSession, url: str) -> Any:
    # The image is the user's: it must not lead the operator to any address that only the operator reaches.
    async with session.get(url, allow_redirects=False) as response:
        if response.status != HTTPStatus.OK:
            raise ValueError(f"it answers {response.status} {response.reason}")
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise ValueError(f"the answer of {url} is compressed, which was not asked for")
        raw = bytearray()
        async for chunk in response.content.iter_any():
            raw += chunk
            if len(raw) > LIMIT:
                raise ValueError(f"the answer of {url} is longer than {LIMIT} bytes")
        return decode(raw)


def provider(item: Any) -> Object | None:
    """A provider as the status lists it; None for anything else."""
    if not isinstance(item, dict) or not all(
        item.get(key) for key in ("api", "provider_id", "provider_type")
    ):
        return None
    health = item.get("health")
    health = health if isinstance(health, dict) else {}
    return {
        "api": _text(item["api"]),
        "provider_id": _text(item["provider_id"]),
        "provider_type": _text(item["provider_type"]),
        "config": _config(item.get("config")),
        "health": {"status": _text(health.get("status")), "message": _text(health.get("message"))},
    }


def _config(told: Any) -> Object:
    """Of a size that the status can hold beside the others'."""
    if not isinstance(told, dict):
        return {}
    if nested(told, DEPTH):
        return {"leftOut": f"nested more than {DEPTH} levels deep"}
    size = len(encode(told))
    return told if size <= CONFIG else {"leftOut": f"{size} bytes"}


def _text(told: Any) -> str:
    if told is None:
        return ""
    return told[:TEXT] if isinstance(told, str) else encode(told).decode()[:TEXT]
