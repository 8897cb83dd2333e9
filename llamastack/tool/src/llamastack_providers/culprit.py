"""Finds the provider that a traceback or an import error is about: the one whose file it names last."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from llamastack_providers.record import Record, owners


def find(text: str, packages: Path, records: Mapping[str, Record]) -> str:
    """Return the provider's id, empty if the text names no provider's file."""
    owner_of = owners(records)
    named = re.findall(re.escape(f"{packages}/") + r"([^\"'\n)]+)", text)
    for path in reversed(named):
        if owner := owner_of.get(path):
            return owner.provider_id
    return ""
