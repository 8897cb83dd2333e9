"""Templates. Every value is one line of escaped text, unless the template uses a filter."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kubefoundry_cli.output import age, as_yaml, clean
from kubefoundry_cli.spec_path import ABSENT

LONGEST: Final = 4000
"""Characters of one value on the page, at most."""


def _line(value: Any) -> Any:
    """Remove control characters and changes of the reading direction, because tenants write most values."""
    if value is None:
        return ""
    return value if isinstance(value, Markup) else shortened(clean(value))


def block(text: object) -> Markup:
    """Return text with its line breaks, escaped and without control characters, at full length."""
    return Markup.escape("\n".join(clean(line.replace("\t", "    ")) for line in str(text).splitlines()))


def code(text: object) -> Markup:
    """Return one line of text in which words between backticks are marked as code."""
    parts = shortened(clean(text)).split("`")
    if len(parts) % 2 == 0:
        # A backtick without a partner stays as it is.
        parts[-2:] = ["`".join(parts[-2:])]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else part for number, part in enumerate(parts)
    )


def shortened(text: str) -> str:
    """Leave out the middle of a text longer than LONGEST."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} … {text[-half:]}"


def _json(value: Any) -> str:
    """Return an upstream value as JSON, and text without quotes."""
    if value is ABSENT:
        return "(nothing)"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@cache
def environment() -> Environment:
    """Return the environment of the page's templates."""
    templates = Environment(
        loader=PackageLoader("kubefoundry_dashboard"),
        autoescape=True,
        finalize=_line,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        age=age, block=block, code=code, json=_json, yaml=lambda value: block(as_yaml([value]))
    )
    return templates
