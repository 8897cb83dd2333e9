"""The connection of one component to the API server, and the faults in it."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.testing._server.requests import Answer, Request
from kubefoundry_sdk.testing._server.store import Storage
from kubefoundry_sdk.testing._server.transport import MemoryTransport
from simulation.server import SimulatedServer, place_of

Fault = Literal["lost", "unsent", "conflict", "error", "busy", "crash"]
"""Of a write: carried out, but the answer is lost; never sent; refused, as somebody wrote meanwhile; refused by a
broken server (500) or a busy one (429); carried out, and the process ends before it reads the answer."""

STALENESS: Final = 2
"""Versions of a kind by which a view may lag behind."""

DISTURBANCES: Final = ("cut", "freeze", "hold", "repeat", "expire")
"""While a link is cut, nothing gets through, and the process notices. A frozen one does not notice, as if it was
stopped. The events of watches are held until STALENESS newer ones wait, or repeated, or watches are too old (410)."""

LATENCIES: Final = (0.0, 0.001, 0.002, 0.003, 0.005, 0.02, 0.2)
"""Seconds that a request or an answer may take."""

NOT_COUNTED: Final = ("events", "leases", "inferenceproviderconfigs")
"""Writes that no fault is spent on: the decisions are in the others."""


@dataclass(slots=True)
class Link:
    """The connection of one process. A restarted process has a new one.

    Attributes:
        chance: Decides on latencies.
        now: Returns simulated seconds.
        crash: Ends the process.
        alive: Whether the process runs.
        until: When each of the DISTURBANCES is over, in simulated seconds.
        failing: The number of the write that fails, counted down, and how.
    """

    chance: random.Random
    now: Callable[[], float]
    crash: Callable[[], None]
    alive: bool = True
    until: dict[str, float] = field(default_factory=lambda: dict.fromkeys(DISTURBANCES, -1.0))
    failing: list[tuple[int, Fault]] = field(default_factory=list)
    _due: Fault | None = None

    @property
    def disturbed_until(self) -> float:
        """Return when the last of its disturbances is over."""
        return max(self.until.values())

    def is_disturbed(self, name: str) -> bool:
        """Check whether one of the DISTURBANCES lasts."""
        return self.now() < self.until[name]

    def heal(self) -> None:
        """End all faults."""
        now = self.now()
        self.until = {name: min(end, now) for name, end in self.until.items()}
        self.failing.clear()

    async def travel(self, what: str) -> None:
        """Take the time of a request or an answer. Raise Unreachable if the connection is cut."""
        self._check(what)
        await asyncio.sleep(self.chance.choice(LATENCIES))
        while self.alive and self.is_disturbed("freeze"):
            await asyncio.sleep(min(0.5, self.until["freeze"] - self.now()))  # `heal` may shorten it
        self._check(what)

    def _check(self, what: str) -> None:
        if not self.alive:
            raise Unreachable(f"{what}: the process has ended")
        if self.is_disturbed("cut"):
            raise Unreachable(f"{what}: connection refused")

    def asked(self, request: Request) -> None:
        """Refuse a write that has to fail, or count down to it."""
        self._due = None
        if not self.failing or not _counts(request):
            return
        number, fault = self.failing[0]
        if number > 1:
            self.failing[0] = (number - 1, fault)
            return
        del self.failing[0]
        match fault:
            case "unsent":
                raise Unreachable(f"{request.method} {request.path}: not sent")
            case "conflict":
                raise ApiError(
                    409, "Conflict", "the object has been modified; please apply your changes again"
                )
            case "error":
                raise ApiError(500, "InternalError", "etcdserver: leader changed")
            case "busy":
                raise ApiError(429, "TooManyRequests", "the server is busy", retry_after=1.0)
            case _:
                self._due = fault

    def answered(self, request: Request, answer: Answer) -> None:
        """Lose the answer if that is due."""
        if answer.code == 501:
            raise AssertionError(f"{request.method} {request.path}: {answer.body['message']}")
        if self._due is None:
            return
        if self._due == "crash":
            self.crash()
        self._due = None
        raise Unreachable(f"{request.method} {request.path}: the answer is lost")


def _counts(request: Request) -> bool:
    return (
        request.method != "GET"
        and request.query.get("dryRun") != "All"
        and "reviews" not in request.path
        and place_of(request.path).storage[1] not in NOT_COUNTED
    )


EXPIRED: Final = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,'
    b'"reason":"Expired","message":"too old resource version"}}\n'
)


class FaultyTransport(MemoryTransport):
    """Sends requests through a link."""

    def __init__(self, server: SimulatedServer, link: Link, *, user_agent: str) -> None:
        super().__init__(server, user_agent=user_agent, asked=link.asked, answered=link.answered)
        self._simulated = server
        self._link = link

    async def exchange(self, method: str, url: str, *arguments: Any, **options: Any) -> bytearray:
        """Answer a request, as Transport.exchange does."""
        await self._link.travel(f"{method} {url}")
        answer = await super().exchange(method, url, *arguments, **options)
        await self._link.travel(f"{method} {url}")
        return answer

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, *arguments: Any, request: str, **options: Any
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the events of a watch, as Transport.stream does."""
        await self._link.travel(request)
        async with super().stream(method, url, *arguments, request=request, **options) as lines:
            yield self._delayed(lines, place_of(url).storage, request)

    async def _delayed(
        self, lines: AsyncIterator[bytes], storage: Storage, request: str
    ) -> AsyncIterator[bytes]:
        link, store = self._link, self._simulated.store
        async for line in lines:
            if link.is_disturbed("hold"):
                version = int(json.loads(line)["object"]["metadata"]["resourceVersion"])
                while link.is_disturbed("hold") and len(store.since(version, storage)) < STALENESS:
                    await asyncio.sleep(min(0.1, link.until["hold"] - link.now()))
            await link.travel(request)
            if link.is_disturbed("expire"):
                yield EXPIRED
                return
            yield line
            if link.is_disturbed("repeat"):
                yield line
