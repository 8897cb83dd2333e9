"""Decodes JSON of a program without any tolerance, and encodes requests to it.

A tolerated mistake would change its meaning with the next parser: the last of two equal keys, NaN, half a character.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from kubefoundry_sdk._api.foreign_json import LEVELS, deep

LONGEST_INTEGER: Final = 308
"""Digits. A longer number is beyond a double, and no API server stores it."""


class Invalid(ValueError):
    """Not strict JSON; the text says what is wrong, to follow the word "line"."""


def decode(raw: bytes) -> Any:
    """Return the value of a line.

    Raise Invalid if the line is not UTF-8 or not JSON, is nested too deep, repeats a key, or has NaN, an infinite
    number or half a surrogate pair.
    """
    if deep(raw):
        raise Invalid(f"that is nested more than {LEVELS} levels deep")
    try:
        value = json.loads(
            raw.decode(),
            object_pairs_hook=_without_repetition,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
        if b"\\u" in raw:
            json.dumps(value, ensure_ascii=False).encode()
    except Invalid:
        raise
    except UnicodeDecodeError as error:
        raise Invalid(f"that is not UTF-8 at byte {error.start}") from error
    except UnicodeEncodeError as error:
        raise Invalid("with half a surrogate pair") from error
    except (ValueError, RecursionError) as error:
        raise Invalid(f"that is not JSON: {str(error)[:120]}") from error
    return value


def encode(value: Any) -> bytes:
    """Return the value as a line of ASCII.

    Values that JSON cannot express, and those nested too deep for a program, become null. The API server sends none.
    """
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        text = json.dumps(_plain(value, LEVELS), separators=(",", ":"))
    return text.encode() + b"\n"


def _plain(value: Any, levels: int) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, dict | list | tuple):
        return value
    if levels == 0:
        return None
    if isinstance(value, dict):
        return {key: _plain(item, levels - 1) for key, item in value.items()}
    return [_plain(item, levels - 1) for item in value]


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, item in pairs:
        if key in value:
            raise Invalid(f"with the key {key[:60]!r} twice")
        value[key] = item
    return value


def _constant(text: str) -> None:
    raise Invalid(f"with {text}, which is not a number in JSON")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Invalid(f"with {text[:40]}, which is beyond a double")
    return number


def _int(text: str) -> int:
    if len(text.lstrip("-")) > LONGEST_INTEGER:
        raise Invalid(f"with a number of {len(text)} digits")
    return int(text)
