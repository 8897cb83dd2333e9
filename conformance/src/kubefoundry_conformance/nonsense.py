"""Nonsense in the place of parts of something sound: wrong types at any depth, huge, deep, numbers that are none.

Seeded by the caller: a tree of this size made of hypothesis' own choices takes seconds, and is hardly made smaller.
"""

from __future__ import annotations

import random
from typing import Any, Final

DEEP: Final = 3000
"""Levels, more than Python's own recursion takes."""


def nested(*, lists: bool) -> Any:
    """Lists, or objects, inside each other."""
    made: Any = "x"
    for _ in range(DEEP):
        made = [made] if lists else {"a": made}
    return made


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
    """The value with parts left out, added and replaced, a few or many, always the same for a seed."""
    chance = random.Random(seed)
    return _spoiled(value, chance, chance.choice((0.02, 0.1, 0.3)))


def _spoiled(value: Any, chance: random.Random, share: float) -> Any:
    if chance.random() < share:
        return chance.choice(LEAVES)
    if isinstance(value, dict):
        made = {
            key: _spoiled(item, chance, share) for key, item in value.items() if chance.random() > share / 2
        }
        return made | (
            {chance.choice(("", "a", "\x00")): chance.choice(LEAVES)} if chance.random() < share else {}
        )
    if isinstance(value, list):
        return [_spoiled(item, chance, share) for item in value]
    return value
