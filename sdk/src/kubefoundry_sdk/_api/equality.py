"""Equality of JSON values. In Python `1 == True`; to the API server and readers of an untyped field it is not."""

from __future__ import annotations

from typing import Any


def same(left: Any, right: Any) -> bool:
    """Check whether both are the same JSON value; 1 and 1.0 are the same number."""
    if left is right:
        return True
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(same(value, right[key]) for key, value in left.items())
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)
