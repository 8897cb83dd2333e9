"""Defines an entry in the table of errors (errors.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from llamastack_providers import layout

PACKAGES_NOTE: Final = (
    f"Previously installed packages can be found in: {layout.EXTERNAL_PROVIDERS}/installed-packages.txt"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the table.

    Attributes:
        title: The first line. `{id}` is the provider.
        meaning: Explanation for the docs.
        resolution: The remedy.
        note: A line before the resolution.
        names_provider: Whether the reason already names provider and image.
        exit_code: 1 for a problem, 2 for a wrong call.
    """

    title: str
    meaning: str
    resolution: str
    note: str = ""
    names_provider: bool = False
    exit_code: int = 1
