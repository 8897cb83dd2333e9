"""The controllers that create pods, by the names that an upstream object may know them by."""

from __future__ import annotations

from typing import Final

GENERATED: Final = 2
"""The most generated parts at the end of a ReplicaSet's name: its own, and one of the Deployment's creator."""


def maker_names(kind: str, name: str) -> list[str]:
    """Return the controller's name; for a ReplicaSet also without its generated parts."""
    parts = name.split("-")
    fewest = max(1, len(parts) - GENERATED) if kind == "ReplicaSet" else len(parts)
    return ["-".join(parts[:count]) for count in range(len(parts), fewest - 1, -1)]
