"""Polls running servers for /v1/providers and /v1/version, in the background and never in a reconcile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from kubefoundry_llamastack.snapshot import Answer
from kubefoundry_sdk._api.foreign_json import Unreadable, decode, encode, nested
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._runtime.fair_queue import FairLimit
from kubefoundry_sdk._runtime.store import Key
from kubefoundry_sdk._runtime.tenant_http import NoAnswer, TooSlow, exchange

POLL_SECONDS: Final = 60.0
RETRY_SECONDS: Final = 5.0
"""Seconds between two requests to a server that answers, and to a server that does not answer yet."""

DEADLINE: Final = 5.0
AT_ONCE: Final = 8
"""Seconds that a server may take, and servers that are polled concurrently; namespaces take turns."""

TEXT: Final = 1024
DEPTH: Final = 32
CONFIG: Final = 4096
PROVIDERS: Final = 128
"""Characters of a text, levels and bytes of a provider's config, and providers that are reported: the status has to
fit into an object of 1.5 MiB together with everything else."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Server:
    url: str
    pods: str
    due: float
    answer: Answer | None = None
    is_polling: bool = False


class ServerPoll:
    """Polls the servers of all CRs.

    Args:
        changed: Called with the key of a CR whose server has a new answer.
    """

    def __init__(self, changed: Callable[[Key], None]) -> None:
        self._changed = changed
        self._servers: dict[Key, _Server] = {}
        self._wake = asyncio.Event()
        self._limit = FairLimit(AT_ONCE)

    def answer(self, key: Key) -> Answer | None:
        """Return the last answer of the CR's server."""
        server = self._servers.get(key)
        return server.answer if server else None

    def follow(self, key: Key, url: str | None, *, pods: str) -> None:
        """Poll the server at the URL from now on.

        Args:
            key: The CR.
            url: The server's address. None stops the poll, because no pod serves.
            pods: Identity of the serving pods. A new value means other pods, which are polled at once.
        """
        server = self._servers.get(key)
        if url is None:
            self._servers.pop(key, None)
        elif server is None or (server.url, server.pods) != (url, pods):
            # A new entry does not wait for the answer of the previous pods.
            answer = server.answer if server and server.url == url else None
            self._servers[key] = _Server(url, pods, asyncio.get_running_loop().time(), answer)
            self._wake.set()

    async def run(self) -> None:
        """Poll until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                now = asyncio.get_running_loop().time()
                for key, server in self._servers.items():
                    if server.due <= now and not server.is_polling:
                        server.is_polling = True
                        group.create_task(self._poll_server(key, server))
                waits = [server.due - now for server in self._servers.values() if not server.is_polling]
                self._wake.clear()
                try:
                    async with asyncio.timeout(min(waits, default=POLL_SECONDS)):
                        await self._wake.wait()
                except TimeoutError:
                    pass

    async def _poll_server(self, key: Key, server: _Server) -> None:
        async with self._limit.turn(key[0]):
            answer = await poll(server.url)
        server.is_polling = False
        server.due = asyncio.get_running_loop().time() + (RETRY_SECONDS if answer.problem else POLL_SECONDS)
        self._wake.set()
        # A server that was replaced meanwhile has an entry of its own.
        if self._servers.get(key) is server and answer != server.answer:
            server.answer = answer
            self._changed(key)


async def poll(url: str) -> Answer:
    """Request the server's answer once.

    Any error becomes part of the answer, because the server is the user's.
    """
    try:
        return await _fetch(url)
    except Exception as error:
        log.exception("the server's answer cannot be read, internal error", extra=logs.values(url=url))
        return Answer(problem=f"The server's answer at {url} cannot be read: {type(error).__name__}")


async def _fetch(url: str) -> Answer:
    try:
        listed = await _json(f"{url}/v1/providers")
        version = await _json(f"{url}/v1/version")
    except Unreadable as error:
        return Answer(problem=f"The server's answer at {url} is not JSON: {error}")
    except TooSlow as error:
        return Answer(problem=f"The server at {url} accepts requests but {error}")
    except NoAnswer as error:
        return Answer(problem=f"The server at {url} {error}"[:TEXT])
    items = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(items, list):
        return Answer(problem=f"The server's answer at {url}/v1/providers is not llama-stack's")
    reported = version.get("version") if isinstance(version, dict) else None
    return Answer([row for item in items[:PROVIDERS] if (row := provider(item))], _text(reported))


async def _json(url: str) -> Any:
    reply = await exchange("GET", url, seconds=DEADLINE)
    if reply.status != HTTPStatus.OK:
        raise NoAnswer(f"answers {reply.status} {reply.reason}")
    return decode(reply.body)


def provider(item: Any) -> Object | None:
    """Return a provider as the status lists it, or None for anything else."""
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


def _config(reported: Any) -> Object:
    """Limit the configuration's size, so that the status can hold all of them."""
    if not isinstance(reported, dict):
        return {}
    if nested(reported, DEPTH):
        return {"leftOut": f"nested more than {DEPTH} levels deep"}
    size = len(encode(reported))
    return reported if size <= CONFIG else {"leftOut": f"{size} bytes"}


def _text(reported: Any) -> str:
    if reported is None:
        return ""
    return reported[:TEXT] if isinstance(reported, str) else encode(reported).decode()[:TEXT]
