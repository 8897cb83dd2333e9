"""The JSON patch (RFC 6902) that adds the defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def patch(before: Mapping[str, Any], after: Mapping[str, Any], at: str) -> Iterator[dict[str, Any]]:
    """Operations that add to `before` what only `after` has; what only `before` has stays.

    at: JSON pointer of both.
    """
    for name, value in after.items():
        pointer = f"{at}/{name.replace('~', '~0').replace('/', '~1')}"
        if name not in before:
            yield {"op": "add", "path": pointer, "value": value}
        elif isinstance(value, Mapping) and isinstance(before[name], Mapping):
            yield from patch(before[name], value, pointer)
        elif value != before[name]:
            yield {"op": "replace", "path": pointer, "value": value}
