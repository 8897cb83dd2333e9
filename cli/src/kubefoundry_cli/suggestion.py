"""Suggest a name for a mistyped one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(name: str, choices: Iterable[str]) -> str:
    """Return `; did you mean 'status'?`, empty if no name is close."""
    close = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.7)
    return f"; did you mean '{close[0]}'?" if close else ""
