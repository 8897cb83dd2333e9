"""How long something has been waited for.

The clock is this process's monotonic clock, because clocks of two machines differ.
"""

from __future__ import annotations

from collections.abc import Sequence


class Wait:
    """The time for which one object has been waiting."""

    def __init__(self) -> None:
        self._since: tuple[tuple[str, ...], float] | None = None

    def left(self, what: Sequence[str], timeout: float, now: float) -> float:
        """Return the seconds left to wait; the clock restarts when `what` changes.

        Args:
            what: The uid of the object, then whom it waits for.
            timeout: Seconds from when this process first saw it.
            now: Monotonic seconds.
        """
        if self._since is None or self._since[0] != tuple(what):
            self._since = (tuple(what), now)
            return timeout
        return timeout - (now - self._since[1])

    def over(self) -> None:
        """Forget the wait: there is nothing to wait for any more."""
        self._since = None


def sooner(first: float | None, second: float | None) -> float | None:
    """Return the shorter of two waits; None is no wait at all."""
    return min((wait for wait in (first, second) if wait is not None), default=None)
