"""Decodes JSON that others wrote, so that any content can be handled, and encodes JSON that we send.

Tenants' objects reach every component through the API server, and responses of tenants' servers reach some. Neither
may cause deep recursion, nor contain anything that we cannot send back.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Final

LEVELS: Final = 200
"""Levels of maps and lists that are read; anything nested deeper is read as empty. Deep enough for every CRD (the
deepest of the supported upstreams has 40), and a fifth of Python's recursion limit: comparing and copying take up to
three frames a level. A ModelDeployment that reaches it is far beyond `spec_limits.DEPTH`, so a cut spec is never
rendered."""

_ESCAPED: Final = re.compile(rb"\\[\\\"]")
_NO_BRACKET: Final = re.compile(rb'"[^"]*"|[^\[\]{}"]+')
_STEPS: Final = bytes.maketrans(b"{[}]", b"\x01\x01\xff\xff")
"""One level down is 1, one level up is -1 as a signed byte."""
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE: Final = re.compile(r"\\(?:u(d[89ab]..)\\u(d[c-f]..)|u(d[89a-f]..)|u....|.)")


class Unreadable(ValueError):
    """Not JSON; the text says where the error is."""


def decode(raw: bytes | bytearray, *, served: bool = False) -> Any:
    """Return the document, with everything nested deeper than LEVELS replaced by empty maps and lists.

    Half a surrogate pair becomes U+FFFD, and a number that JSON cannot express (NaN, infinite, beyond a double)
    becomes None: neither could be sent to the API server.

    Args:
        raw: The document as received.
        served: Whether the API server sent it. Its documents hold no such numbers, and a search for them would
            take a fifth of the time.

    Raises:
        Unreadable: It is not JSON.
    """
    numbers: dict[str, Any] = {} if served else _NUMBERS
    try:
        value = json.loads((_cut(raw) if deep(raw) else raw).decode(), **numbers)
    except (ValueError, RecursionError) as error:
        raise Unreadable(str(error)[:200]) from error
    return _paired(value) if _SURROGATE.search(raw) else value


def encode(value: Any) -> bytes:
    """Return JSON that is also valid YAML, because the API server reads an apply as YAML.

    Characters above U+FFFF are sent unescaped, because YAML has no surrogate pairs. All others outside ASCII are
    escaped, because YAML treats some of them as line breaks and refuses others. Raise ValueError for NaN and
    infinity.
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return (_ESCAPE.sub(_unescaped, text) if "\\ud" in text else text).encode()


def nested(value: Any, levels: int) -> bool:
    """Check whether maps and lists are nested more than `levels` deep. Does not recurse."""
    layer = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        if not layer:
            return False
        layer = [
            child
            for item in layer
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
    return bool(layer)


def deep(raw: bytes | bytearray) -> bool:
    """Check whether there are more than LEVELS levels."""
    if raw.count(b"{") + raw.count(b"[") <= LEVELS:
        return False
    steps = _NO_BRACKET.sub(b"", _ESCAPED.sub(b"", raw)).translate(_STEPS)
    return max(accumulate(memoryview(steps).cast("b")), default=0) > LEVELS


def set_aside(raw: bytes | bytearray, mark: str) -> tuple[bytes, list[bytes]]:
    """Return the text with each map and list at level LEVELS + 1 replaced by a string, and the replaced texts.

    The string is `mark`, which must not be in `raw`, and the index of the replaced text.
    """
    if not deep(raw):
        return bytes(raw), []
    kept, parts, end = bytearray(), list[bytes](), 0
    for start, stop in _deep_spans(raw):
        kept += raw[end:start] + f'"{mark}{len(parts)}"'.encode()
        parts.append(bytes(raw[start:stop]))
        end = stop
    return bytes(kept + raw[end:]), parts


def _cut(raw: bytes | bytearray) -> bytes:
    """Return the text without the content of brackets at level LEVELS + 1."""
    kept, end = bytearray(), 0
    for start, stop in _deep_spans(raw):
        kept += raw[end : start + 1]
        end = stop - 1
    return bytes(kept + raw[end:])


def _deep_spans(raw: bytes | bytearray) -> Iterator[tuple[int, int]]:
    """Yield start and end of each map and list at level LEVELS + 1."""
    start, level = 0, 0
    for token in _TOKEN.finditer(raw):
        mark = token[0]
        if mark in b"[{":
            level += 1
            if level == LEVELS + 1:
                start = token.start()
        elif mark in b"]}":
            if level == LEVELS + 1:
                yield start, token.end()
            level -= 1


def _nothing(_: str) -> None:
    return None


def _float(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _int(text: str) -> int | None:
    # The largest double has 309 digits.
    return int(text) if len(text) < 309 else None


_NUMBERS: Final = {"parse_constant": _nothing, "parse_float": _float, "parse_int": _int}


def _paired(value: Any) -> Any:
    if isinstance(value, dict):
        return {_paired(key): _paired(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_paired(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        return chr(0x10000 + ((int(match[1], 16) - 0xD800) << 10) + int(match[2], 16) - 0xDC00)
    return "\\ufffd" if match[3] else match[0]
