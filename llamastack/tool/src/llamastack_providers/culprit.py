"""Which provider a traceback, or the message of an import error, is about: whose file is named last in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from llamastack_providers.record import Record, owners


def find(text: str, packages: Path, records: Mapping[str, Record]) -> str:
    """The provider's id; empty where no file of a provider is named."""
    owner_of = owners(records)
    named = re.findall(re.escape(f"{packages}/") + r"([^\"'\n)]+)", text)
    for path in reversed(named):
        if owner := owner_of.get(path):
            return owner.provider_id
    return ""
