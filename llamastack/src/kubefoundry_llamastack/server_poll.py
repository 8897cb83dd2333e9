"""Polls running servers for /v1/providers and /v1/version, in the background and never in a reconcile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from kubefoundry_llamastack.report import Answer
from kubefoundry_sdk.api.foreign_json import Unreadable, decode, encode, nested
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.runtime.fair_queue import FairLimit
from kubefoundry_sdk.runtime.store import Key
from kubefoundry_sdk.runtime.tenant_http import NoAnswer, TooSlow, exchange

EVERY: Final = 60.0
AGAIN: Final = 5.0
"""Seconds between two requests to a server that answers, and to one that does not yet."""

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
class _Known:
    url: str
    pods: str
    due: float
    answer: Answer | None = None
    asking: bool = False


class ServerPoll:
    """`changed` is called with the key of a CR whose server has a new answer."""

    def __init__(self, changed: Callable[[Key], None]) -> None:
        self._changed = changed
        self._known: dict[Key, _Known] = {}
        self._wake = asyncio.Event()
        self._limit = FairLimit(AT_ONCE)

    def answer(self, key: Key) -> Answer | None:
        """The last answer of the CR's server."""
        known = self._known.get(key)
        return known.answer if known else None

    def follow(self, key: Key, url: str | None, *, pods: str) -> None:
        """Polls the server at the URL from now on; None stops, because no pod serves.

        pods: a new value means that other pods serve now, which are polled at once.
        """
        known = self._known.get(key)
        if url is None:
            self._known.pop(key, None)
        elif known is None or (known.url, known.pods) != (url, pods):
            # do not wait for an answer of the previous pods
            answer = known.answer if known and known.url == url else None
            self._known[key] = _Known(url, pods, asyncio.get_running_loop().time(), answer)
            self._wake.set()

    async def run(self) -> None:
        """Polls until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                now = asyncio.get_running_loop().time()
                for key, known in self._known.items():
                    if known.due <= now and not known.asking:
                        known.asking = True
                        group.create_task(self._ask(key, known))
                waits = [known.due - now for known in self._known.values() if not known.asking]
                self._wake.clear()
                try:
                    async with asyncio.timeout(min(waits, default=EVERY)):
                        await self._wake.wait()
                except TimeoutError:
                    pass

    async def _ask(self, key: Key, known: _Known) -> None:
        async with self._limit.turn(key[0]):
            answer = await ask(known.url)
        known.asking = False
        known.due = asyncio.get_running_loop().time() + (AGAIN if answer.problem else EVERY)
        self._wake.set()
        if self._known.get(key) is known and answer != known.answer:
            known.answer = answer
            self._changed(key)


async def ask(url: str) -> Answer:
    """One request; an error becomes part of the answer, whatever it is: the server is the user's."""
    try:
        return await _answer(url)
    except Exception as error:
        log.exception("the answer of %s cannot be read because of an internal error", url)
        return Answer(problem=f"The server's answer at {url} cannot be read: {type(error).__name__}")


async def _answer(url: str) -> Answer:
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


def _config(reported: Any) -> Object:
    """Bounded, so that the status can hold all of them."""
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
