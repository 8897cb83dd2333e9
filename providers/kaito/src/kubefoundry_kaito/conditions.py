"""Conditions of a Workspace, read without trust in their form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Reported:
    """A condition as KAITO wrote it; what is no text is the empty one."""

    type: str
    status: str
    reason: str
    message: str

    def words(self) -> str:
        """Type, reason and message on one line, in KAITO's own words."""
        said = f"{self.type} is {self.status}" + (f" ({self.reason})" if self.reason else "")
        return f"{said}: {self.message}" if self.message else said


def by_type(status: Mapping[str, Any]) -> dict[str, Reported]:
    """The conditions that can be read, by type."""
    listed = status.get("conditions")
    return {
        item["type"]: Reported(*(_text(item.get(name)) for name in ("type", "status", "reason", "message")))
        for item in (listed if isinstance(listed, list) else [])
        if isinstance(item, Mapping) and isinstance(item.get("type"), str)
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
