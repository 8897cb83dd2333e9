"""Derives the names under which an upstream object may refer to the controllers that create its pods."""

from __future__ import annotations

from typing import Final

GENERATED: Final = 2
"""The most generated suffixes of a ReplicaSet's name: the ReplicaSet's own, and the suffix of the Deployment's
name."""


def maker_names(kind: str, name: str) -> list[str]:
    """Return the controller's name; for a ReplicaSet also without its generated parts."""
    parts = name.split("-")
    fewest = max(1, len(parts) - GENERATED) if kind == "ReplicaSet" else len(parts)
    return ["-".join(parts[:count]) for count in range(len(parts), fewest - 1, -1)]
