"""Equality of JSON values. In Python `1 == True`; to the API server and readers of an untyped field it is not."""

from __future__ import annotations

from typing import Any


def same(one: Any, other: Any) -> bool:
    """Whether both are the same JSON value; 1 and 1.0 are the same number."""
    if one is other:
        return True
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(same(value, other[key]) for key, value in one.items())
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
