"""A valid document in which one part is replaced by hostile JSON, as text: no library writes all of it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from kubefoundry_sdk._api.kinds import Object

HOSTILE: dict[str, str] = {
    "null": "null",
    "a map": "{}",
    "a list": "[]",
    "nothing in a list": "[null]",
    "a list in a list": "[[]]",
    "a map in a list": '[{"name":null}]',
    "a number": "7",
    "a large number": "9" * 400,
    "an infinite one": "-1e999",
    "true": "true",
    "an empty text": '""',
    "a text": '"text"',
    "half a surrogate pair": '"\\ud83d"',
    "a long text": json.dumps("x" * 5_000),
    "1,000 maps": '{"a":' * 1000 + "1" + "}" * 1000,
    "1,100 lists": "[" * 1100 + "]" * 1100,
}


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every part of a document, and of the document itself."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in inside:
        if step not in ("description", "openAPIV3Schema", "additionalPrinterColumns"):
            yield from places(child, (*path, step))


def spoilt(good: Object, path: tuple[str | int, ...], text: str) -> bytes:
    """Return the document as JSON with another text at a path."""
    mark = "@here@"
    whole = [copy.deepcopy(good)]
    place: Any = whole
    *parents, last = (0, *path)
    for step in parents:
        place = place[step]
    place[last] = mark
    return json.dumps(whole[0]).replace(f'"{mark}"', text).encode()
