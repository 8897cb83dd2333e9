"""Checks the form of responses: an object, a page, a watch event, a line. Anything else is not from an API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from kubefoundry_sdk._api.foreign_json import Unreadable, decode
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.errors import ForeignAnswer


def object_of(raw: bytes | bytearray, request: str) -> Object:
    """Return the response to `request` as a JSON object. Raise ForeignAnswer if it is something else."""
    answer = _decoded(raw, request)
    if not isinstance(answer, dict):
        raise ForeignAnswer(f"{request}: the response is not an object")
    return answer


def resource_of(raw: bytes | bytearray, request: str) -> Object:
    """Return the response as an object with a name. Raise ForeignAnswer otherwise: a page may be JSON, too."""
    answer = object_of(raw, request)
    meta = answer.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
        raise ForeignAnswer(f"{request}: the response is not an object with a name")
    return answer


def items_of(page: Object) -> list[Object]:
    """Return the objects of a page. Raise ForeignAnswer if it is something else."""
    items, meta = page.get("items"), page.get("metadata")
    version = meta.get("resourceVersion") if isinstance(meta, dict) else None
    if not isinstance(version, str) or not version.isdecimal() or not isinstance(items, list | None):
        raise ForeignAnswer("the response is not a list")
    return items or []


def event_of(raw: bytes | bytearray, request: str) -> Object:
    """Return a watch event. Raise ForeignAnswer if it is something else."""
    event = _decoded(raw, request)
    if not isinstance(event, dict) or not isinstance(event.get("object"), dict) or "type" not in event:
        raise ForeignAnswer(f"{request}: the response is not a watch event")
    return event


async def lines_of(chunks: AsyncIterator[bytes], longest: int | None = None) -> AsyncIterator[bytearray]:
    """Yield the lines, each with its end; a last line without an end is yielded, too.

    aiohttp's readline() is not used, because it limits a line to 128 KiB: a CRD alone may have a megabyte. A line of
    more than `longest` bytes is yielded in pieces.
    """
    rest = bytearray()
    async for chunk in chunks:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            rest += chunk[start : end + 1]
            yield rest
            rest, start = bytearray(), end + 1
        rest += chunk[start:]
        if longest is not None and len(rest) > longest:
            yield rest
            rest = bytearray()
    if rest:
        yield rest


def _decoded(raw: bytes | bytearray, request: str) -> Any:
    try:
        return decode(raw, served=True)
    except Unreadable as error:
        raise ForeignAnswer(f"{request}: the response is not JSON ({error})") from error
