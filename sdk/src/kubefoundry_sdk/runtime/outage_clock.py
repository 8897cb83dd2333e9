"""A clock that stops while the API server is unreachable: a missing report proves nothing then.

After an outage each wait (contract §3 to §5: for a heartbeat, a clean-up, an upstream operator) resumes where it was.
Otherwise the outage alone would make every provider count as lost and every clean-up as overdue.
"""

from __future__ import annotations

from collections.abc import Callable


class OutageClock:
    """A clock that stops while every watch of a process fails. Every watch reports to it.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seeing: set[str] = set()
        self._failing: set[str] = set()
        self._blind_since: float | None = None
        self._blind = 0.0

    def sees(self, watch: str) -> None:
        """Record that the watch works."""
        self._failing.discard(watch)
        self._seeing.add(watch)
        self._judge()

    def fails(self, watch: str) -> None:
        """Record that the watch fails. The clock stops only if every watch fails."""
        self._seeing.discard(watch)
        self._failing.add(watch)
        self._judge()

    def ends(self, watch: str) -> None:
        """Forget a watch that has ended."""
        self._seeing.discard(watch)
        self._failing.discard(watch)
        self._judge()

    def now(self) -> float:
        """Return the seconds of the clock without the time in which every watch failed."""
        until = self._clock() if self._blind_since is None else self._blind_since
        return until - self._blind

    def _judge(self) -> None:
        blind = bool(self._failing) and not self._seeing
        if blind and self._blind_since is None:
            self._blind_since = self._clock()
        elif not blind and self._blind_since is not None:
            self._blind += self._clock() - self._blind_since
            self._blind_since = None
