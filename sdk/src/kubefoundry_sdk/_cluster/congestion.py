"""Limits the writes in flight by a window that follows the API server's response times, as TCP does.

More requests than an API server can process at a time only wait there, and users' requests wait behind them. So each
process keeps fewer writes in flight while writes are slower than their minimum, and more otherwise. If even one write
at a time is slow, because other clients keep the server busy, a process pauses between the writes of a namespace with
many objects. The processes do not coordinate. As with TCP, all of them back off when the server is slow.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final

from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

SLOW: Final = 2.5
"""The multiple of its floor above which the duration of a write shrinks the window. With two requests for each core
of a server that only computes, a write takes twice as long. More requests add no throughput."""

CROWDED: Final = 5.0
"""The multiple of its floor above which the duration of a write shrinks a window of one. Five processes with one
write in flight each stay below it on two cores, and 20 creates of users at a time exceed it by far (section e of
docs/benchmarks.md)."""

LEAST: Final = 1 / 8
"""The smallest window: a pause of seven times the duration of the reconcile."""

CUT: Final = 0.5
"""The factor by which the window shrinks."""

OVERLOADED: Final = (429, 503, 504)
"""Status codes of an overloaded API server."""

LONGEST: Final = 1.0
"""The most seconds for which a reconcile takes room. A longer reconcile is waiting for something else, such as an
upstream system's webhook, and would only hold up other objects."""

PERIOD: Final = 300.0
"""A floor is forgotten after one to two times this many seconds: a server may have moved to a slower machine."""


@dataclass(frozen=True, slots=True)
class Window:
    """The limit of writes in flight.

    Attributes:
        size: Writes that may be in flight. Below 1 it is the share of the time in which a write of a namespace with
            many objects is in flight.
        cut: The time at which the window last shrank, in seconds of the same clock.
    """

    size: float = 1.0
    cut: float = float("-inf")


def answered(window: Window, *, sent: float, now: float, floor: float, full: bool) -> Window:
    """Return the window after a write that was sent at `sent` and answered at `now`, both in seconds.

    The window grows by one for each round trip, or is halved at most once for each round trip. Below one it doubles
    with each response. A window of one or less shrinks only after a much slower response (CROWDED). `floor` is the
    shortest duration of such a write in seconds. `full`: whether other writes have to wait. Otherwise a window above
    one has no use.
    """
    if now - sent > (SLOW if window.size > 1 else CROWDED) * floor:
        return _cut(window, LEAST if full and window.size <= 1 else 1.0, sent=sent, now=now)
    if full or window.size < 1:
        return replace(window, size=window.size + min(window.size, 1 / window.size))
    return window


def refused(window: Window, *, sent: float, now: float) -> Window:
    """Return the window after a response that reports an overloaded server, or after no response."""
    return _cut(window, LEAST, sent=sent, now=now)


def pause(window: Window, taken: float) -> float:
    """Return the pause after a reconcile of `taken` seconds in a window below one: at most LONGEST seconds."""
    return min(max(0.0, taken / window.size - taken), LONGEST)


def _cut(window: Window, least: float, *, sent: float, now: float) -> Window:
    """Return a smaller window, unless the request was sent before the last cut, and so with the window before."""
    return Window(max(least, window.size * CUT), now) if sent >= window.cut else window


@dataclass(slots=True)
class Floor:
    """The shortest duration of the last one to two PERIODs."""

    _shortest: float = float("inf")
    _before: float = float("inf")
    _since: float = float("-inf")

    def add(self, seconds: float, now: float) -> float:
        """Return the floor including this duration."""
        if now - self._since > PERIOD:
            self._before = self._shortest if now - self._since <= 2 * PERIOD else float("inf")
            self._shortest, self._since = float("inf"), now
        self._shortest = min(self._shortest, seconds)
        return min(self._shortest, self._before)


def route(method: str, url: str) -> str:
    """Return method, kind and subresource: requests that take equally long, whatever the object's name."""
    parts = url.split("/")
    rest = parts[3 if parts[1] == "api" else 4 :]
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    return "/".join((method, rest[0], *rest[2:]))


def _set() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass(slots=True)
class Congestion:
    """Limits the writes in flight: a reconcile takes `room`, and the durations of its writes move the window.

    Only values of this process's own clock are compared.
    """

    window: Window = field(default_factory=Window)
    _taken: int = 0
    _floors: dict[str, Floor] = field(default_factory=dict)
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    _pauses: int = 0
    _idle: asyncio.Event = field(default_factory=_set)
    """Set while no reconcile waits for room or for the end of a pause."""

    @asynccontextmanager
    async def room(self) -> AsyncIterator[None]:
        """Wait for room to write, and occupy it for at most LONGEST seconds.

        Callers decide on the write inside the block, so no decision gets stale in a queue.
        """
        await self._enter()
        loop = asyncio.get_running_loop()
        timer = loop.call_later(LONGEST, self._leave)
        try:
            yield
        finally:
            if timer.when() > loop.time():
                timer.cancel()
                self._leave()

    def pause_after(self, taken: float) -> float:
        """Return the seconds for which a namespace with more objects pauses after a reconcile of `taken` seconds.

        The caller keeps the namespace's other objects waiting outside `room`, so that they delay no other namespace.
        """
        seconds = pause(self.window, taken) if taken <= LONGEST else 0.0
        if seconds:
            self._pauses += 1
            self._idle.clear()
            asyncio.get_running_loop().call_later(seconds, self._end_pause)
        return seconds

    async def give_way(self) -> None:
        """Wait until no reconcile waits, at most LONGEST seconds. For writes that are not urgent."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST):
                await self._idle.wait()

    @contextmanager
    def write(self, method: str, url: str) -> Iterator[None]:
        """Measure a request that changes something: its response, or the lack of one, moves the window."""
        sent = time.monotonic()
        try:
            yield
        except (ApiError, Unreachable) as error:
            if not isinstance(error, ApiError) or error.code in OVERLOADED:
                self.window = refused(self.window, sent=sent, now=time.monotonic())
            raise
        now = time.monotonic()
        floor = self._floors.setdefault(route(method, url), Floor()).add(now - sent, now)
        self.window = answered(self.window, sent=sent, now=now, floor=floor, full=self._is_full())
        self._admit_waiting()

    def _is_full(self) -> bool:
        return bool(self._waiting or self._pauses)

    async def _enter(self) -> None:
        if not self._waiting and self._taken < max(1, int(self.window.size)):
            self._taken += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._idle.clear()
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._waiting:
                self._waiting.remove(turn)
                self._admit_waiting()
            else:
                self._leave()
            raise

    def _end_pause(self) -> None:
        self._pauses -= 1
        self._admit_waiting()

    def _leave(self) -> None:
        self._taken -= 1
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        while self._waiting and self._taken < max(1, int(self.window.size)):
            self._taken += 1
            turn = self._waiting.popleft()
            if turn.cancelled():
                self._taken -= 1
            else:
                turn.set_result(None)
        if not self._is_full():
            self._idle.set()
