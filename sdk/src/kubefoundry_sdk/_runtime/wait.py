"""Measures the time that an object has waited, by this process's monotonic clock.

The clocks of two machines differ, so times of other machines are not used.
"""

from __future__ import annotations

from collections.abc import Sequence


class Wait:
    """The time for which one object has been waiting."""

    def __init__(self) -> None:
        self._since: tuple[tuple[str, ...], float] | None = None

    def left(self, subject: Sequence[str], timeout: float, now: float) -> float:
        """Return the remaining seconds of the wait. The wait restarts when `subject` changes.

        Args:
            subject: The uid of the object, and the names of the components that it waits for.
            timeout: Seconds from the time at which this process first saw the wait.
            now: Monotonic seconds.
        """
        if self._since is None or self._since[0] != tuple(subject):
            self._since = (tuple(subject), now)
            return timeout
        return timeout - (now - self._since[1])

    def reset(self) -> None:
        """Forget the wait: there is nothing to wait for any more."""
        self._since = None


def sooner(first: float | None, second: float | None) -> float | None:
    """Return the shorter of two waits. None means no wait."""
    return min((wait for wait in (first, second) if wait is not None), default=None)
