"""The JSON patch (RFC 6902) that removes nulls and adds the defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

KEPT: Final = "/spec/provider/overrides"
"""Path below which nulls are kept as values, because the provider defines the schema of this field."""


def remove_nulls(value: Any, at: str) -> Iterator[dict[str, Any]]:
    """Remove null fields from `value`, and yield the operations that do so.

    Templates render an empty value as null, which the schema rejects under server-side apply. Built-in resources
    accept it. Must be consumed before `value` is read.

    Args:
        value: The JSON value to change in place.
        at: JSON pointer of `value`.

    Yields:
        JSON patch operations, in the order of the fields.
    """
    if at == KEPT:
        return
    if isinstance(value, dict):
        for name in list(value):
            pointer = f"{at}/{_escaped(name)}"
            if value[name] is None:
                del value[name]
                yield {"op": "remove", "path": pointer}
            else:
                yield from remove_nulls(value[name], pointer)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from remove_nulls(item, f"{at}/{index}")


def patch(before: Mapping[str, Any], after: Mapping[str, Any], at: str) -> Iterator[dict[str, Any]]:
    """Yield the operations that add fields of `after` to `before`.

    Args:
        before: The value to change. Fields that only `before` has stay.
        after: The value with the defaults.
        at: JSON pointer of both.

    Yields:
        JSON patch operations.
    """
    for name, value in after.items():
        pointer = f"{at}/{_escaped(name)}"
        if name not in before:
            yield {"op": "add", "path": pointer, "value": value}
        elif isinstance(value, Mapping) and isinstance(before[name], Mapping):
            yield from patch(before[name], value, pointer)
        elif value != before[name]:
            yield {"op": "replace", "path": pointer, "value": value}


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
