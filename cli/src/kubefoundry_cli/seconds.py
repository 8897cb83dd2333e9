"""Define the type of options that limit a wait."""

from __future__ import annotations

import math
import re
from typing import Final

import click

UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
"""Seconds of each unit of a duration in kubectl (Go: time.ParseDuration)."""

PART: Final = re.compile(rf"([0-9]+\.?[0-9]*|\.[0-9]+)({'|'.join(UNITS)})")
DURATION: Final = re.compile(rf"(?:{PART.pattern})+")

LONGEST: Final = 2**63 / 1e9
"""The longest duration of kubectl in seconds: its nanoseconds have 63 bits."""


def seconds(value: str) -> float:
    """Return the seconds of a duration such as `1h30m`; a number without a unit is seconds. Raises BadParameter."""
    if DURATION.fullmatch(value):
        number = sum(float(amount) * UNITS[unit] for amount, unit in PART.findall(value))
    else:
        number = _number(value)
    if not 0 <= number < LONGEST:
        raise click.BadParameter(f"{value!r} is not a duration: write 90s, 20m or 1h30m.")
    return number


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan
