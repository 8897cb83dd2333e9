"""Durations as kubectl writes them (`1h30m`), or a number of seconds."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
"""Seconds of each unit of a duration in kubectl (Go: time.ParseDuration)."""

_NUMBER: Final = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_PART: Final = re.compile(rf"({_NUMBER})({'|'.join(_UNITS)})")
_DURATION: Final = re.compile(rf"(?:{_PART.pattern})+")
_SECONDS: Final = re.compile(rf"{_NUMBER}(?:[eE][+-]?[0-9]+)?")

_LIMIT: Final = 2**63 / 1e9
"""The first number of seconds that a duration of kubectl cannot hold: its nanoseconds have 63 bits."""


def parse(text: str) -> float:
    """Return the seconds of a duration such as `1h30m`. A number without a unit is seconds.

    Raise ValueError for any other text, a negative number, and more than a duration of kubectl can be.
    """
    number = _LIMIT
    if _DURATION.fullmatch(text):
        number = sum(float(amount) * _UNITS[unit] for amount, unit in _PART.findall(text))
    elif _SECONDS.fullmatch(text):
        number = float(text)
    if number >= _LIMIT:
        raise ValueError(f"{text!r} is not a duration: write 90s, 20m or 1h30m")
    return number
