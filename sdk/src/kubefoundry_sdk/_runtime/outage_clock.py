"""A clock that stops while the API server is unreachable, because a missing report proves nothing during that time.

After an outage each wait (contract §3 to §5: for a heartbeat, a clean-up, an upstream operator) resumes where it was.
Otherwise the outage alone would make every provider count as lost and every clean-up as overdue.
"""

from __future__ import annotations

from collections.abc import Callable


class OutageClock:
    """A clock that stops while every watch of a process fails. Every watch reports to it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._working: set[str] = set()
        self._failing: set[str] = set()
        self._stopped_since: float | None = None
        self._stopped = 0.0

    def sees(self, watch: str) -> None:
        """Record that the watch works."""
        self._failing.discard(watch)
        self._working.add(watch)
        self._update()

    def fails(self, watch: str) -> None:
        """Record that the watch fails. The clock stops only if every watch fails."""
        self._working.discard(watch)
        self._failing.add(watch)
        self._update()

    def ends(self, watch: str) -> None:
        """Forget a watch that has ended."""
        self._working.discard(watch)
        self._failing.discard(watch)
        self._update()

    def now(self) -> float:
        """Return the seconds of the clock without the time in which every watch failed."""
        until = self._clock() if self._stopped_since is None else self._stopped_since
        return until - self._stopped

    def _update(self) -> None:
        is_stopped = bool(self._failing) and not self._working
        if is_stopped and self._stopped_since is None:
            self._stopped_since = self._clock()
        elif not is_stopped and self._stopped_since is not None:
            self._stopped += self._clock() - self._stopped_since
            self._stopped_since = None
