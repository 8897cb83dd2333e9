"""An event loop whose clock leaps over the time in which nothing happens; requests over loopback are real."""

from __future__ import annotations

import asyncio
import selectors
from typing import Final

MOMENT: Final = 0.001
"""Real seconds within which an answer over loopback is there, before the clock leaps."""


class _Leaping(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        came = super().select(MOMENT)
        if not came:
            self.now += timeout
        return came


class SimulatedTime(asyncio.SelectorEventLoop):
    """For `asyncio.Runner(loop_factory=SimulatedTime)`."""

    def __init__(self) -> None:
        self._leaping = _Leaping()
        super().__init__(self._leaping)

    def time(self) -> float:
        return self._leaping.now
