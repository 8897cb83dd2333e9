"""Set or remove a field of a spec by its path, in a copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

ABSENT: Final = object()
"""The value of a missing field."""


class NotAnObject(Exception):
    """A value on the path has no fields; the message is its name."""


def with_value(spec: Any, path: Sequence[str], value: Any, name: str = "spec") -> dict[str, Any]:
    """Return the spec with the value at the path, and create missing objects on the way.

    Args:
        spec: The spec.
        path: The steps to the field.
        value: The new value, ABSENT to remove the field.
        name: The name of `spec` itself in the exception.

    Raises:
        NotAnObject: A value on the path is not an object.
    """
    if not isinstance(spec, Mapping):
        raise NotAnObject(name)
    first, *rest = path
    if rest:
        return {**spec, first: with_value(spec.get(first, {}), rest, value, first)}
    if value is ABSENT:
        return {name: item for name, item in spec.items() if name != first}
    return {**spec, first: value}
