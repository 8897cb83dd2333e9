"""An event loop whose clock skips the time without events. Requests over loopback are real."""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, Final, ParamSpec

P = ParamSpec("P")

MOMENT: Final = 0.001
"""Real seconds to wait for a response over loopback before the clock skips ahead."""


class _Leaping(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(MOMENT)
        if not ready:
            self.now += timeout
        return ready


class SimulatedTime(asyncio.SelectorEventLoop):
    """The loop, for `asyncio.Runner(loop_factory=SimulatedTime)`."""

    def __init__(self) -> None:
        self._leaping = _Leaping()
        super().__init__(self._leaping)

    def time(self) -> float:
        return self._leaping.now


def in_simulated_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test in a loop that skips the time of a Lease: a machine that stops for a second loses none."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=SimulatedTime) as runner:
            runner.run(test(*args, **kwargs))

    return run
