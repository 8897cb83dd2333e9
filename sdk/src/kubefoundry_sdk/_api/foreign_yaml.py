"""Read the YAML of others: a text in an object, a form of the page, and a file of the user.

All readers of YAML use it, except llamastack_providers.yaml_file: its zipapp runs in images without the SDK, keeps
dates, as llama-stack does, and reports line and column.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Final

LIMIT: Final = 64 * 1024
"""The longest document in characters that is decoded; providers render a few thousand. 256 KiB of brackets take
seconds to parse, in which nobody else's objects are reconciled."""
DEPTH: Final = 32
"""Levels of nesting that are decoded."""
FILE_DEPTH: Final = 200
"""Levels of nesting in a file of the user; those of JSON, see foreign_json."""
MOST: Final = 200_000
"""Maximum number of values of a user's file with all aliases expanded. A few lines of nested aliases can expand to
billions."""

_CONVERSIONS: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
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


@functools.cache
def _loader(*, unique_keys: bool) -> Any:
    """Return a loader of the values that JSON has: `2024-01-01` is text, as it is for kubectl.

    With unique keys, a repeated key is an error: one of its values would be lost silently.
    """
    import yaml

    class Loader(quick_loader()):  # type: ignore[misc]
        yaml_implicit_resolvers = {  # noqa: RUF012 (as the base class declares it)
            first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
            for first, resolvers in quick_loader().yaml_implicit_resolvers.items()
        }

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = set()
            for key, _ in node.value if unique_keys and isinstance(node, yaml.MappingNode) else ():
                if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                    if key.value in keys:
                        raise yaml.constructor.ConstructorError(
                            None, None, f"the key {key.value!r} occurs twice", key.start_mark
                        )
                    keys.add(key.value)
            return super().construct_mapping(node, deep=deep)

    return Loader


def decode(text: str, *, depth: int = DEPTH, limit: int = LIMIT) -> Any:
    """Return the content of YAML text that somebody else wrote. Of a repeated key the last value counts.

    Raises:
        Unreadable: The text is not YAML, has more than `limit` characters, is nested more than `depth` levels
            deep, has a number of more than DIGITS characters, or contains aliases, with which a short text can
            expand to any size.
    """
    if len(text) > limit:
        raise Unreadable(f"has more than {limit} characters")
    return _only(_loaded(text, depth, aliases=False, unique_keys=False))


def documents(text: str, *, unique_keys: bool = True) -> list[Any]:
    """Return the documents of a user's file, as kubectl reads them.

    Raises:
        Unreadable: The text is not YAML, is nested more than FILE_DEPTH levels deep, has a number of more than DIGITS
            characters, has aliases that expand to more than MOST values, or repeats a key that has to be unique.
    """
    return _loaded(text, FILE_DEPTH, aliases=True, unique_keys=unique_keys)


def document(text: str, *, unique_keys: bool = True) -> Any:
    """Return the only document of a user's file or argument, None for an empty one. Raises Unreadable."""
    return _only(documents(text, unique_keys=unique_keys))


def _only(parsed: list[Any]) -> Any:
    if len(parsed) > 1:
        raise Unreadable(f"holds {len(parsed)} YAML documents instead of one")
    return parsed[0] if parsed else None


def _loaded(text: str, depth: int, *, aliases: bool, unique_keys: bool) -> list[Any]:
    import yaml

    try:
        _check_events(text, depth, aliases=aliases)
        parsed = list(yaml.load_all(text, Loader=_loader(unique_keys=unique_keys)))  # a safe loader
        if "*" in text and _expanded(parsed, {}) > MOST:
            raise Unreadable(f"has aliases that expand to more than {MOST} values")
        return parsed
    except Unreadable:
        raise
    except (yaml.YAMLError, *_CONVERSIONS) as error:
        raise Unreadable(f"is not YAML: {' '.join(str(error).split())}") from error


def _check_events(text: str, depth: int, *, aliases: bool) -> None:
    import yaml

    level = 0
    for event in yaml.parse(text, Loader=quick_loader()):
        level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent) and not aliases:
            raise Unreadable("contains aliases, which are not accepted")
        if isinstance(event, yaml.ScalarEvent) and _endless(event):
            raise Unreadable(f"has a number of more than {DIGITS} characters")
        if level > depth:
            raise Unreadable(f"is nested more than {depth} levels deep")


def _endless(scalar: Any) -> bool:
    """Check whether a scalar may be read as a number and is too long for one: it is not quoted, or has a tag."""
    typed = scalar.tag is not None or scalar.implicit[0]
    return typed and len(scalar.value) > DIGITS and _NUMBER.fullmatch(scalar.value) is not None


def _expanded(content: Any, counts: dict[int, int]) -> int:
    """Return the number of values; a part that is repeated by aliases counts each time."""
    if not isinstance(content, dict | list):
        return 1
    if id(content) not in counts:
        # For a value that contains itself: its expansion has no end.
        counts[id(content)] = MOST + 1
        parts = content.values() if isinstance(content, dict) else content
        counts[id(content)] = 1 + sum(_expanded(part, counts) for part in parts)
    return counts[id(content)]
