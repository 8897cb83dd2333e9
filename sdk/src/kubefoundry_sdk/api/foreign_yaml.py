"""Decodes YAML that others wrote, so that any content can be handled: a field of an object, or a form of the page."""

from __future__ import annotations

from typing import Any, Final

LIMIT: Final = 64 * 1024
"""The longest document in characters that is decoded; providers render a few thousand. 256 KiB of brackets take
seconds to parse, in which nobody else's objects are reconciled."""
DEPTH: Final = 32
"""Levels of nesting that are decoded."""


class Unreadable(ValueError):
    """Why a text is not decoded; to follow the text's name in a sentence."""


def decode(text: str, *, depth: int = DEPTH, limit: int = LIMIT) -> Any:
    """The content.

    Raises Unreadable if it is not YAML, has more than `limit` characters, is nested more than `depth` levels deep, or
    contains aliases, with which a short text can expand to any size.
    """
    import yaml  # most providers have no documents

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if len(text) > limit:
        raise Unreadable(f"has more than {limit} characters")
    level = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent):
                raise Unreadable("contains aliases, which are not accepted")
            if level > depth:
                raise Unreadable(f"is nested more than {depth} levels deep")
        return yaml.load(text, Loader=loader)  # a safe loader
    except Unreadable:
        raise
    except (yaml.YAMLError, TypeError, OverflowError, ValueError) as error:
        raise Unreadable(f"is not YAML: {' '.join(str(error).split())}") from error
