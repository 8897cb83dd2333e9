"""Names that others wrote, as they appear in our messages: on one line, visible and bounded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

LONGEST: Final = 100
"""Characters of one name."""
MOST: Final = 10
"""Names of a list."""


def shown(text: str) -> str:
    """Return the name for a message: cut if it is long, quoted with escapes if it has invisible characters."""
    cut = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return cut if cut.isprintable() else json.dumps(cut)


def listed(names: Sequence[str]) -> str:
    """Return the first names for a message, and how many more there are."""
    more = [f"{len(names) - MOST} more"] if len(names) > MOST else []
    return ", ".join([*map(shown, names[:MOST]), *more])
