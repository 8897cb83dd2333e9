"""An event loop whose clock only the test moves: timers that are due fire in order, and nothing waits for real."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

TICK: Final = 1e-6
"""Seconds that each turn of the loop takes. Without them, a wait of less than a float can add to the time would be
repeated forever."""

UNMOVED: Final = (
    "nothing is left to do, and only the test moves the clock: await `harness.advance(seconds)` where it waits, "
    "not `asyncio.sleep` or a request to a real server"
)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop that jumps to the next timer when it is idle, within the time that `advance` permits."""

    def __init__(self) -> None:
        self._now = 0.0
        self._until: tuple[float, asyncio.Future[None]] | None = None
        super().__init__(_IdleSelector(self._tick, self._idle))

    def time(self) -> float:
        """Return the simulated time in seconds."""
        return self._now

    async def advance(self, seconds: float) -> None:
        """Let this many seconds pass for everything that runs in the loop."""
        if self._until is not None:
            raise RuntimeError("the clock is being moved already")
        end = self.create_future()
        self._until = (self._now + seconds, end)
        try:
            await end
        finally:
            self._until = None

    def run_in_executor(  # type: ignore[override]  # a Future is what callers await
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Call the function at once: while a thread works, the loop would count as idle."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def _tick(self) -> None:
        self._now += TICK

    def _idle(self, timeout: float | None) -> None:
        """Move the clock to the next timer, `timeout` seconds ahead, or to the end of the advance."""
        if self._until is None or self._until[1].done():
            raise RuntimeError(UNMOVED)
        until, end = self._until
        if timeout is not None and self._now + timeout <= until:
            self._now += timeout
        else:
            self._now = max(self._now, until)
            end.set_result(None)


class _IdleSelector(selectors.SelectSelector):
    """Tells when there is nothing to do, in place of waiting."""

    def __init__(self, tick: Callable[[], None], idle: Callable[[float | None], None]) -> None:
        super().__init__()
        self._tick = tick
        self._idle = idle

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now."""
        self._tick()
        ready = super().select(0)
        if not ready and timeout != 0:
            self._idle(timeout)
        return ready


def simulated(test: Callable[Arguments, Coroutine[Any, Any, Result]]) -> Callable[Arguments, Result]:
    """Run an async test in an event loop whose clock only the test moves. Needs no plugin of pytest."""

    @wraps(test)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
            return runner.run(test(*args, **kwargs))

    return run
