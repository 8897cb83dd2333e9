"""How long something has been waited for, by this process's own monotonic clock: those of two machines differ."""

from __future__ import annotations

from collections.abc import Sequence


class Wait:
    """Since when one object has waited for something."""

    def __init__(self) -> None:
        self._since: tuple[tuple[str, ...], float] | None = None

    def left(self, what: Sequence[str], timeout: float, now: float) -> float:
        """Seconds that there is still to wait; the clock starts again when `what` is waited for changes.

        what: the uid of the object, then for whom it waits. timeout: seconds from when this process first saw it.
        """
        if self._since is None or self._since[0] != tuple(what):
            self._since = (tuple(what), now)
            return timeout
        return timeout - (now - self._since[1])

    def over(self) -> None:
        """Nothing is waited for."""
        self._since = None
