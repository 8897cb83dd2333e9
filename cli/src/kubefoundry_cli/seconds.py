"""How long a command waits, as an option's type."""

from __future__ import annotations

import math

import click


def seconds(value: str) -> float:
    """A number of seconds, not negative and finite. Raises BadParameter."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise click.BadParameter(f"{value!r} is not a number of seconds.")
    return number
