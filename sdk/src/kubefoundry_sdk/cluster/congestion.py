"""How many writes may be on their way at once: a window that follows the API server's answer times, as TCP's does.

What is beyond the knee of an API server makes nothing faster: it waits there, and users' own requests wait behind it.
So each process keeps fewer writes in flight while they take longer than they can, and more while they do not. The
processes know nothing of each other; as with TCP, all of them shrink when the server is slow.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final

from kubefoundry_sdk.cluster.errors import ApiError, Unreachable

SLOW: Final = 2.5
"""Times its floor that a write takes before the window shrinks. Two requests for each core that there is, where the
server has nothing to wait for, take twice as long; beyond that more requests make it no faster."""

CUT: Final = 0.5
"""What is left of the window then."""

OVERLOADED: Final = (429, 503, 504)
"""Codes by which the API server says that it has too much to do."""

LONGEST: Final = 1.0
"""Seconds that a turn counts. What takes longer waits for something else, such as an upstream system's webhook, and
would only hold up other objects."""

PERIOD: Final = 300.0
"""Seconds after which a floor is forgotten, at most twice that: a server may have moved to a slower machine."""


@dataclass(frozen=True, slots=True)
class Window:
    """size: writes that may be in flight; one always may. cut: when it last shrank, in seconds of some clock."""

    size: float = 1.0
    cut: float = float("-inf")


def answered(window: Window, *, sent: float, now: float, floor: float, full: bool) -> Window:
    """The window after a write's answer: larger by one in a round trip, or half, once in a round trip.

    floor: seconds that such a write takes at least. full: whether others had to wait, as only then more is of use.
    """
    if now - sent > SLOW * floor:
        return refused(window, sent=sent, now=now)
    return replace(window, size=window.size + 1 / window.size) if full else window


def refused(window: Window, *, sent: float, now: float) -> Window:
    """The window after an answer that says the server has too much to do, or after none.

    What was sent before the last cut reflects the window before it.
    """
    return Window(max(1.0, window.size * CUT), now) if sent >= window.cut else window


@dataclass(slots=True)
class Floor:
    """The shortest of what was seen in the last PERIOD seconds or two."""

    _shortest: float = float("inf")
    _before: float = float("inf")
    _since: float = float("-inf")

    def see(self, seconds: float, now: float) -> float:
        """The floor, this one counted in."""
        if now - self._since > PERIOD:
            self._before = self._shortest if now - self._since <= 2 * PERIOD else float("inf")
            self._shortest, self._since = float("inf"), now
        self._shortest = min(self._shortest, seconds)
        return min(self._shortest, self._before)


def route(method: str, url: str) -> str:
    """What takes the same time, whatever the object is called: method, kind and subresource."""
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
    """The window at work. Turns that write take `room`; their writes, and the time that each took, move it.

    Only values of this process's own clock are compared.
    """

    window: Window = field(default_factory=Window)
    _taken: int = 0
    _floors: dict[str, Floor] = field(default_factory=dict)
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    _idle: asyncio.Event = field(default_factory=_set)
    """Nobody waits for room."""

    @asynccontextmanager
    async def room(self) -> AsyncIterator[None]:
        """Waits until one more may write, and counts as one for LONGEST seconds at most.

        What is to be written is decided inside, so it does not grow old in a queue.
        """
        await self._enter()
        timer = asyncio.get_running_loop().call_later(LONGEST, self._leave)
        try:
            yield
        finally:
            if timer.when() > asyncio.get_running_loop().time():
                timer.cancel()
                self._leave()

    async def give_way(self) -> None:
        """Waits until nobody waits for room, LONGEST seconds at most: for writes that nobody waits for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST):
                await self._idle.wait()

    @contextmanager
    def write(self, method: str, url: str) -> Iterator[None]:
        """A request that changes something: its answer, or that there is none, moves the window."""
        sent = time.monotonic()
        try:
            yield
        except (ApiError, Unreachable) as error:
            if not isinstance(error, ApiError) or error.code in OVERLOADED:
                self.window = refused(self.window, sent=sent, now=time.monotonic())
            raise
        now = time.monotonic()
        floor = self._floors.setdefault(route(method, url), Floor()).see(now - sent, now)
        self.window = answered(self.window, sent=sent, now=now, floor=floor, full=bool(self._waiting))
        self._let_in()

    async def _enter(self) -> None:
        if not self._waiting and self._taken < int(self.window.size):
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
                self._let_in()
            else:
                self._leave()
            raise

    def _leave(self) -> None:
        self._taken -= 1
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self._taken < int(self.window.size):
            self._taken += 1
            turn = self._waiting.popleft()
            if turn.cancelled():
                self._taken -= 1
            else:
                turn.set_result(None)
        if not self._waiting:
            self._idle.set()
