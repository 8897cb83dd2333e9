"""Decodes YAML that others wrote, so that any content can be handled: a field of an object, or a form of the page."""

from __future__ import annotations

import re
from typing import Any, Final

LIMIT: Final = 64 * 1024
"""The longest document in characters that is decoded; providers render a few thousand. 256 KiB of brackets take
seconds to parse, in which nobody else's objects are reconciled."""
DEPTH: Final = 32
"""Levels of nesting that are decoded."""

CONVERSIONS: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Exceptions of PyYAML beside its own YAMLError: its conversions of values like `!!bool x`, `!!int ""` and
`!!timestamp x` check nothing (PyYAML 6.0, constructor.py)."""

DIGITS: Final = 300
"""The longest number in characters: the largest double has 309 digits, and Python writes no integer of more than
4,300. The time to read a number in base 60 (`1:1:1`) grows with the square of its length."""
_NUMBER: Final = re.compile(r"[-+.:_0-9a-fA-FoxX]+")


class Unreadable(ValueError):
    """The text cannot be decoded. The message continues a sentence that begins with the text's name."""


def quick_loader() -> Any:
    """Return PyYAML's safe loader; libyaml's, which is several times as fast, if PyYAML was built with it."""
    import yaml  # most providers have no documents

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def decode(text: str, *, depth: int = DEPTH, limit: int = LIMIT) -> Any:
    """Return the content of YAML text.

    Raises:
        Unreadable: The text is not YAML, has more than `limit` characters, is nested more than `depth` levels
            deep, has a number of more than DIGITS characters, or contains aliases, with which a short text can
            expand to any size.
    """
    import yaml

    loader = quick_loader()
    if len(text) > limit:
        raise Unreadable(f"has more than {limit} characters")
    level = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent):
                raise Unreadable("contains aliases, which are not accepted")
            if isinstance(event, yaml.ScalarEvent) and _endless(event):
                raise Unreadable(f"has a number of more than {DIGITS} characters")
            if level > depth:
                raise Unreadable(f"is nested more than {depth} levels deep")
        return yaml.load(text, Loader=loader)  # a safe loader
    except Unreadable:
        raise
    except (yaml.YAMLError, *CONVERSIONS) as error:
        raise Unreadable(f"is not YAML: {' '.join(str(error).split())}") from error


def _endless(scalar: Any) -> bool:
    """Check whether a scalar may be read as a number and is too long for one: it is not quoted, or has a tag."""
    typed = scalar.tag is not None or scalar.implicit[0]
    return typed and len(scalar.value) > DIGITS and _NUMBER.fullmatch(scalar.value) is not None
