"""Counts the repairs of an object, so that its controller backs off if somebody keeps changing it."""

from __future__ import annotations

from typing import Final

LIMIT: Final = 5
WINDOW: Final = 600.0
"""The controller of an object backs off after LIMIT repairs of it within WINDOW seconds."""


class Repairs:
    """The times at which an object was corrected."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def wait(self, now: float) -> float:
        """Return the seconds until the object may be corrected again; 0 if it may be now."""
        self._times = [time for time in self._times if now - time < WINDOW]
        return WINDOW - (now - self._times[0]) if len(self._times) >= LIMIT else 0.0

    def note(self, now: float) -> None:
        """Record a correction at this time."""
        self._times.append(now)
