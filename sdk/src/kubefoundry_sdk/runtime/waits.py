"""How long something has been waited for, by this process's own monotonic clock: those of two machines differ."""

from __future__ import annotations

from collections.abc import Sequence

from kubefoundry_sdk.runtime.store import Key


class Waits:
    """Since when a ModelDeployment has waited for something.

    timeout: seconds that it waits, from when this process first saw that it has to.
    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._since: dict[Key, tuple[tuple[str, ...], float]] = {}

    def left(self, key: Key, what: Sequence[str], now: float) -> float:
        """Seconds that there is still to wait; the clock starts again when `what` is waited for changes.

        what: the uid of the ModelDeployment, then for whom it waits.
        """
        known = self._since.get(key)
        if known is None or known[0] != tuple(what):
            self._since[key] = (tuple(what), now)
            return self.timeout
        return self.timeout - (now - known[1])

    def forget(self, key: Key) -> None:
        self._since.pop(key, None)
