"""Wait for states of objects in the API server, and read them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import EVENTS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError

SECONDS: Final = 20.0
"""Longest wait for a state, in seconds."""

_patience = 1.0

Holds = Callable[[Object | None], Any]
Present = Callable[[Object], Any]


class NotSeen(Exception):
    """Raised if an expected state does not come in time; the message has the last state."""


def set_patience(factor: float) -> None:
    """Multiply each wait for a state by a factor from now on."""
    global _patience
    _patience = factor


def longest(seconds: float) -> float:
    """Return the longest wait. A wait below SECONDS is for a forbidden state, so it is not multiplied."""
    return seconds * _patience if seconds >= SECONDS else seconds


async def until(
    api: Client, kind: Kind, name: str, namespace: str | None, holds: Holds, *, seconds: float = SECONDS
) -> Object | None:
    """Wait for a state of an object.

    Args:
        api: The client.
        kind: The kind of the object.
        name: The name of the object.
        namespace: The namespace, None for an object of the cluster.
        holds: Tests a state; None stands for a missing object.
        seconds: The longest wait, which `longest` may multiply.

    Returns:
        The first state for which `holds` is true.

    Raises:
        NotSeen: `holds` was true of no state in time.
    """
    last: Object | None = None
    seconds = longest(seconds)
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
    """Yield the current state of an object, then each later one; None while it is missing.

    The watch is repeated if the API server asks to retry. It does so for a new CRD until its storage is ready.
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
    """Record each state of an existing object in a queue, from the start of the context on."""
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
    """Return the first recorded state for which `holds` is true.

    Raises:
        NotSeen: `holds` was true of no state in time.
    """
    last: Object | None = None
    seconds = longest(seconds)
    try:
        async with asyncio.timeout(seconds):
            while True:
                last = await queue.get()
                if holds(last):
                    return last
    except TimeoutError:
        raise NotSeen(f"after {seconds:.0f} s the last state was {_shown(last)}") from None


async def event(api: Client, name: str, namespace: str, reason: str, word: str) -> None:
    """Wait for an Event of a ModelDeployment, which may follow its transition late.

    Raises:
        NotSeen: No such Event came in time. The message has the reasons of the others.
    """
    reasons: set[str] = set()
    try:
        async with asyncio.timeout(longest(SECONDS)):
            async for item in _events(api, namespace):
                if about(item, name):
                    reasons.add(str(item.get("reason")))
                    if item.get("reason") == reason and word in (item.get("note") or ""):
                        return
    except TimeoutError:
        pass
    raise NotSeen(f"Events {sorted(reasons)}")


async def _events(api: Client, namespace: str) -> AsyncIterator[Object]:
    """Yield the existing Events, then the new ones."""
    items, version = await api.list(EVENTS, namespace)
    for item in items:
        yield item
    async for item in api.watch(EVENTS, namespace, resource_version=version, seconds=300, silence=300):
        yield item["object"]


def about(item: Object, name: str) -> bool:
    """Check whether an Event is about the ModelDeployment of that name."""
    regarding = item.get("regarding") or {}
    return (regarding.get("kind"), regarding.get("name")) == (names.MODEL_DEPLOYMENT, name)


def phase(obj: Object | None) -> str:
    """Return the phase of a ModelDeployment, empty if there is none."""
    return str(((obj or {}).get("status") or {}).get("phase", ""))


def condition(obj: Object | None, type_: str) -> Mapping[str, Any]:
    """Return the condition of that type, empty if there is none."""
    conditions: list[Mapping[str, Any]] = ((obj or {}).get("status") or {}).get("conditions") or []
    return next((item for item in conditions if item["type"] == type_), {})
