"""Templates: every value is one line of escaped text unless the template asks for more."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kubefoundry_cli.output import age, as_yaml, clean
from kubefoundry_cli.spec_path import ABSENT

LONGEST: Final = 4000
"""Characters of one value that are shown."""


def _line(value: Any) -> Any:
    """Without what moves a cursor or turns the reading direction: tenants write most of what is shown."""
    if value is None:
        return ""
    return value if isinstance(value, Markup) else shortened(clean(value))


def block(text: object) -> Markup:
    """Several lines of text, each as `_line` has it but for their length."""
    return Markup.escape("\n".join(clean(line.replace("\t", "    ")) for line in str(text).splitlines()))


def shortened(text: str) -> str:
    """With its middle left out where it is long."""
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} … {text[-half:]}"


def _json(value: Any) -> str:
    """A value upstream as people write it."""
    if value is ABSENT:
        return "(nothing)"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@cache
def environment() -> Environment:
    """The page's templates."""
    made = Environment(
        loader=PackageLoader("kubefoundry_dashboard"),
        autoescape=True,
        finalize=_line,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(age=age, block=block, json=_json, yaml=lambda value: block(as_yaml([value])))
    return made
