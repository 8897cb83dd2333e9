"""Bounds how often one status is written while the upstream's own status does not settle (contract §4).

An upstream whose status flaps, or that writes nonsense, would else cause a write and an Event of ours for each write
of its own, and each of ours wakes every component.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubefoundry_sdk.api import conditions, reasons

BURST: Final = 20
"""Writes that are sent at once: a creation takes about six, a rollout of several replicas some more."""

EVERY: Final = 6.0
"""Seconds after which one more is sent."""


class Pace:
    """How many writes of one status may follow at once."""

    def __init__(self) -> None:
        self._left = float(BURST)
        self._at: float | None = None

    def wait(self, now: float) -> float:
        """Return the seconds until the next write may be sent, 0 if it may be sent now.

        Args:
            now: Monotonic seconds.
        """
        self._refill(now)
        return max(0.0, (1 - self._left) * EVERY)

    def note(self, now: float) -> None:
        """Count a write, one that could not wait, too."""
        self._refill(now)
        self._left = max(0.0, self._left - 1)

    def _refill(self, now: float) -> None:
        since = 0.0 if self._at is None else now - self._at
        self._left = min(float(BURST), self._left + since / EVERY)
        self._at = now


def can_wait(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Check whether nobody is misled while a status stays as it is for a few seconds.

    A model that stops serving is reported at once, and so is a newer generation of the spec.

    Args:
        before: The status of the ModelDeployment.
        after: The one to write.
    """
    old, new = before.get("conditions"), after.get("conditions")
    stops = conditions.is_true(old, reasons.READY) and not conditions.is_true(new, reasons.READY)
    return "phase" in after and not stops and _newest(new) <= _newest(old)


def _newest(found: Any) -> int:
    """The newest generation that a condition names."""
    return max((int(item.get("observedGeneration") or 0) for item in found or ()), default=0)
