"""Define the type of options that limit a wait."""

from __future__ import annotations

import math

import click


def seconds(value: str) -> float:
    """Return a number of seconds that is finite and not negative. Raises BadParameter."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise click.BadParameter(f"{value!r} is not a number of seconds.")
    return number
