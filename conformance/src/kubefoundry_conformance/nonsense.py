"""Corrupt parts of a valid value: wrong types, huge or deeply nested values, NaN.

The caller passes a seed. Hypothesis takes seconds to generate a tree of this size, and hardly shrinks it.
"""

from __future__ import annotations

import random
from typing import Any, Final

DEEP: Final = 3000
"""Levels, more than Python's recursion limit."""


def nested(*, lists: bool) -> Any:
    """Return lists or objects nested DEEP levels."""
    value: Any = "x"
    for _ in range(DEEP):
        value = [value] if lists else {"a": value}
    return value


LEAVES: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    -5,
    1.5,
    2**40,
    2**70,
    float("nan"),
    float("inf"),
    "",
    "True",
    "[" * 4096,
    '{"a":' * 4096,
    "a: &a [x, x]\nb: &b [*a, *a]",
    "\U0001f600",
    "\x00",
    "9" * 5000,
    "x" * 70_000,
    [],
    {},
    [None],
    {"a": None},
    nested(lists=True),
    nested(lists=False),
)


def spoiled(value: Any, seed: int) -> Any:
    """Return the value with parts removed, added and replaced; the same result for the same seed."""
    randomness = random.Random(seed)
    return _spoiled(value, randomness, randomness.choice((0.02, 0.1, 0.3)))


def _spoiled(value: Any, randomness: random.Random, share: float) -> Any:
    if randomness.random() < share:
        return randomness.choice(LEAVES)
    if isinstance(value, dict):
        fields = {
            key: _spoiled(item, randomness, share)
            for key, item in value.items()
            if randomness.random() > share / 2
        }
        return fields | (
            {randomness.choice(("", "a", "\x00")): randomness.choice(LEAVES)}
            if randomness.random() < share
            else {}
        )
    if isinstance(value, list):
        return [_spoiled(item, randomness, share) for item in value]
    return value
