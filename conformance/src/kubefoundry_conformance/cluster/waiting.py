"""Waiting for what the API server reports, and reading it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import EVENTS, Kind, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError

SECONDS: Final = 20.0
"""How long anything is waited for."""

Holds = Callable[[Object | None], Any]
Present = Callable[[Object], Any]


class NotSeen(Exception):
    """What was waited for did not come; the text is the last state."""


async def until(
    api: Client, kind: Kind, name: str, namespace: str | None, holds: Holds, *, seconds: float = SECONDS
) -> Object | None:
    """The object once `holds` is true of it (None stands for: there is none). Raises NotSeen."""
    last: Object | None = None
    try:
        async with asyncio.timeout(seconds):
            async for last in changes(api, kind, name, namespace):
                if holds(last):
                    return last
    except TimeoutError:
        pass
    raise NotSeen(f"after {seconds:.0f} s {kind.kind} {name} is {_shown(last)}")


def _shown(last: Object | None) -> str:
    if last is None:
        return "not there"
    return str(last.get("status") or {"finalizers": last["metadata"].get("finalizers")})


async def changes(api: Client, kind: Kind, name: str, namespace: str | None) -> AsyncIterator[Object | None]:
    """The object as it is, then each state that it gets; None where it is not there.

    Goes on where the API server asks to come again: of a CRD that has just come, its storage is not ready at once.
    """
    selector = {"fieldSelector": f"metadata.name={name}"}
    while True:
        try:
            items, version = await api.list(kind, namespace, selector=selector)
            yield items[0] if items else None
            watch = api.watch(
                kind, namespace, resource_version=version, seconds=300, silence=300, selector=selector
            )
            async for event in watch:
                if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                    yield None if event["type"] == "DELETED" else event["object"]
        except ApiError as error:
            if error.retry_after is None:
                raise
            await asyncio.sleep(error.retry_after)


@asynccontextmanager
async def states(
    api: Client, kind: Kind, name: str, namespace: str | None
) -> AsyncIterator[asyncio.Queue[Object]]:
    """Each state that an object that is there gets from here on, for `first`, whatever else is done meanwhile."""
    queue: asyncio.Queue[Object] = asyncio.Queue()

    async def read() -> None:
        async for state in changes(api, kind, name, namespace):
            queue.put_nowait(state or {"metadata": {}})

    reader = asyncio.create_task(read())
    try:
        await first(queue, bool)
        yield queue
    finally:
        reader.cancel()
        await asyncio.wait([reader])


async def first(queue: asyncio.Queue[Object], holds: Present, *, seconds: float = SECONDS) -> Object:
    """The first of the states of which `holds` is true. Raises NotSeen."""
    last: Object | None = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                last = await queue.get()
                if holds(last):
                    return last
    except TimeoutError:
        raise NotSeen(f"after {seconds:.0f} s the last state was {_shown(last)}") from None


async def event(api: Client, name: str, namespace: str, reason: str, word: str) -> None:
    """Waits for an Event of a ModelDeployment: it may come after what it is about.

    Raises NotSeen, with the reasons that came.
    """
    found: set[str] = set()
    try:
        async with asyncio.timeout(SECONDS):
            async for item in _events(api, namespace):
                if about(item, name):
                    found.add(str(item.get("reason")))
                    if item.get("reason") == reason and word in (item.get("note") or ""):
                        return
    except TimeoutError:
        pass
    raise NotSeen(f"Events {sorted(found)}")


async def _events(api: Client, namespace: str) -> AsyncIterator[Object]:
    """Those that are there, then those that come."""
    items, version = await api.list(EVENTS, namespace)
    for item in items:
        yield item
    async for item in api.watch(EVENTS, namespace, resource_version=version, seconds=300, silence=300):
        yield item["object"]


def about(item: Object, name: str) -> bool:
    """Whether an Event is about the ModelDeployment of that name."""
    regarding = item.get("regarding") or {}
    return (regarding.get("kind"), regarding.get("name")) == (names.MODEL_DEPLOYMENT, name)


def phase(obj: Object | None) -> str:
    return str(((obj or {}).get("status") or {}).get("phase", ""))


def condition(obj: Object | None, type_: str) -> Mapping[str, Any]:
    """The condition of that type, empty where there is none."""
    for item in ((obj or {}).get("status") or {}).get("conditions") or ():
        if item["type"] == type_:
            found: Mapping[str, Any] = item
            return found
    return {}
