"""What makes pods, by the names under which an upstream object may know it."""

from __future__ import annotations

from typing import Final

GENERATED: Final = 2
"""Parts that are generated at the end of a ReplicaSet's name, at most: its own, and one of the Deployment's maker."""


def maker_names(kind: str, name: str) -> list[str]:
    """The maker's name, of a ReplicaSet also without the generated parts."""
    parts = name.split("-")
    fewest = max(1, len(parts) - GENERATED) if kind == "ReplicaSet" else len(parts)
    return ["-".join(parts[:count]) for count in range(len(parts), fewest - 1, -1)]
