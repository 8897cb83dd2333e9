"""Whether the upstream operator still answers: `StaleStatus` (003 §13.4).

Stale is a status that is absent, or that speaks of an older generation, for five minutes. A model that takes long
to load and an idle healthy one are neither: their operator has acknowledged what stands there.
"""

from __future__ import annotations

from typing import Any, Final

from kubefoundry_sdk.api.kinds import Object

THRESHOLD: Final = 300.0
"""Seconds (003 §13.4)."""


def acknowledged(live: Object) -> bool:
    """Whether the upstream's status speaks of the object as it is now, as far as it tells.

    Read from `status.observedGeneration`, else from the conditions', else from there being a status at all.
    """
    status: dict[str, Any] = live.get("status") or {}
    if not status:
        return False
    seen = status.get("observedGeneration")
    if seen is None:
        told = [
            item.get("observedGeneration")
            for item in status.get("conditions") or ()
            if isinstance(item, dict)
        ]
        known = [number for number in told if isinstance(number, int)]
        seen = max(known, default=None)
    return not isinstance(seen, int) or seen >= live["metadata"]["generation"]


def message(live: Object) -> str:
    """The one line for the user."""
    meta = live["metadata"]
    said = (
        "has no status"
        if not live.get("status")
        else f"has a status older than generation {meta['generation']}"
    )
    return (
        f"{live['kind']} '{meta['name']}' {said} for more than {THRESHOLD / 60:.0f} minutes; "
        "check that its operator runs"
    )


class Silences:
    """Since when which upstream object (by uid and generation) has gone unacknowledged."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], tuple[str, int, float]] = {}

    def left(self, key: tuple[str, str], live: Object, now: float) -> float:
        """Seconds until the silence counts as stale; 0 or less when it does."""
        mark = (live["metadata"]["uid"], live["metadata"]["generation"])
        known = self._since.get(key)
        if known is None or known[:2] != mark:
            self._since[key] = (*mark, now)
            return THRESHOLD
        return THRESHOLD - (now - known[2])

    def forget(self, key: tuple[str, str]) -> None:
        self._since.pop(key, None)
