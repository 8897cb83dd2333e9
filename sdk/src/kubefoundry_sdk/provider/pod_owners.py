"""The names by which an upstream object may know the controllers that create its pods."""

from __future__ import annotations

from typing import Final

GENERATED: Final = 2
"""The most generated parts at the end of a ReplicaSet's name: its own suffix, and one that the Deployment's creator
adds."""


def maker_names(kind: str, name: str) -> list[str]:
    """Return the controller's name; for a ReplicaSet also without its generated parts."""
    parts = name.split("-")
    fewest = max(1, len(parts) - GENERATED) if kind == "ReplicaSet" else len(parts)
    return ["-".join(parts[:count]) for count in range(len(parts), fewest - 1, -1)]
