"""Define the type of options that limit a wait."""

from __future__ import annotations

import click

from kubefoundry_sdk._api.duration import parse


def seconds(value: str) -> float:
    """Return the seconds of a duration such as `1h30m`; a number without a unit is seconds. Raises BadParameter."""
    try:
        return parse(value)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None
