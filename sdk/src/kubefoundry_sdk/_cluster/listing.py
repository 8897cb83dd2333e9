"""A complete list of a kind, page by page, with little memory until it is complete."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.skipped import skipped


async def complete_list(
    client: Client,
    kind: Kind,
    namespace: str | None,
    selector: Mapping[str, str] | None,
    reduce: Callable[[Object], Any] | None,
) -> tuple[Iterator[Any], str]:
    """Return all objects, and the resource version to watch from.

    `reduce` returns the part of an object to keep until the list is complete, or None to leave it out. Without it,
    all pages but the last are kept deflated.
    """
    deflated: list[bytes] = []
    last: list[Object] = []
    kept_parts: list[Any] = []
    version = ""
    async for page, version in client.pages(kind, namespace, selector=selector):  # noqa: B007 (the last one)
        if reduce:
            kept_parts.extend(_reduced(page, reduce))
            continue
        if last:
            deflated.append(zlib.compress(json.dumps(last, ensure_ascii=False).encode(), 1))
        last = page
    return iter(kept_parts) if reduce else _inflated(deflated, last), version


def _reduced(page: list[Object], reduce: Callable[[Object], Any]) -> Iterator[Any]:
    for obj in page:
        try:
            kept = reduce(obj)
        except Exception as error:
            skipped(obj, error)
            continue
        if kept is not None:
            yield kept


def _inflated(deflated: list[bytes], last: list[Object]) -> Iterator[Object]:
    """Yield the objects; each page is freed once it is read."""
    deflated.reverse()
    while deflated:
        yield from json.loads(zlib.decompress(deflated.pop()))
    while last:
        yield last.pop(0)
