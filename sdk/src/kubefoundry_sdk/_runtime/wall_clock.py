"""The time of day that this process writes into objects. Tests with a simulated clock replace it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final

_CLOCK: Final[ContextVar[Callable[[], datetime] | None]] = ContextVar("wall_clock", default=None)


def now() -> datetime:
    """Return the current time in UTC."""
    clock = _CLOCK.get()
    return clock() if clock else datetime.now(UTC)


@contextmanager
def set_to(clock: Callable[[], datetime]) -> Iterator[None]:
    """Let `now` return the time of this clock inside the block, and in tasks that are started there."""
    token = _CLOCK.set(clock)
    try:
        yield
    finally:
        _CLOCK.reset(token)
