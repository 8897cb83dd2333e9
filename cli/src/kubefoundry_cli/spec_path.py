"""A field of a spec by its path: another value, or none, in a copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

ABSENT: Final = object()
"""The value of a field that is not there."""


class NotAnObject(Exception):
    """Something on the way is a value without fields; the text is its name."""


def with_value(spec: Any, path: Sequence[str], value: Any, name: str = "spec") -> dict[str, Any]:
    """The spec with that value there; objects on the way are made where they are missing. Raises NotAnObject.

    name: how the exception calls `spec` itself.
    """
    if not isinstance(spec, Mapping):
        raise NotAnObject(name)
    first, *rest = path
    if rest:
        return {**spec, first: with_value(spec.get(first, {}), rest, value, first)}
    if value is ABSENT:
        return {name: item for name, item in spec.items() if name != first}
    return {**spec, first: value}
