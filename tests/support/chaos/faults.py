"""What goes wrong between the API server and our processes, and with both: one fault at a time, each with an end."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from aiohttp import web

from kubefoundry_local.suite import Suite
from support.proxy import Fault, Proxy, all_behind

SHARE: Final = 0.3
"""Of the answers that are faulty."""

ANSWERS: Final = (
    Fault(500, "InternalError"),
    Fault(503, "ServiceUnavailable"),
    Fault(429, "TooManyRequests", retry_after=1),
    Fault(409, "Conflict"),
)

COMPONENTS: Final = ("core", "selector", "kaito", "dynamo", "kuberay")
"""Without provider direct: no controller of Deployments runs here, so a model that it takes while the others are down
would never serve."""

FAULTS: Final = ("kill", "freeze", "restart", "answers", "cut")


class Ground:
    """A suite each of whose processes reaches the API server by a proxy of its own."""

    def __init__(self, suite: Suite, proxies: Mapping[str, Proxy], chance: random.Random) -> None:
        self.suite = suite
        self._proxies = proxies
        self._random = chance

    @asynccontextmanager
    async def wrong(self, fault: str) -> AsyncIterator[None]:
        """The fault for as long as the block lasts."""
        match fault:
            case "kill":
                component = self.suite.components[self._random.choice(COMPONENTS)]
                component.kill()
                yield
                component.start()
                await asyncio.to_thread(component.wait_ready)
            case "freeze":
                process = self.suite.components[self._random.choice(COMPONENTS)].process
                assert process is not None
                process.send_signal(signal.SIGSTOP)
                try:
                    yield
                finally:
                    # A frozen process does not end, which would hide why the block failed.
                    process.send_signal(signal.SIGCONT)
            case "restart":
                restarting = asyncio.create_task(asyncio.to_thread(self.suite.plane.restart_api_server))
                try:
                    yield
                finally:
                    await restarting
            case "answers":
                for proxy in self._proxies.values():
                    proxy.rule, proxy.done = self._faulty, self._lost
                yield
                for proxy in self._proxies.values():
                    proxy.rule, proxy.done = (lambda request: None), (lambda request: None)
            case _:
                for proxy in self._proxies.values():
                    proxy.cut_watches()
                yield

    @property
    def faulty_answers(self) -> int:
        """How many answers were made up by now."""
        return sum(
            number
            for proxy in self._proxies.values()
            for code, number in proxy.answered.items()
            if code != "passed"
        )

    def _faulty(self, request: web.Request) -> Fault | None:
        return self._random.choice(ANSWERS) if self._random.random() < SHARE / 2 else None

    def _lost(self, request: web.Request) -> None:
        """The server has done it, and whoever asked for it does not learn that."""
        if self._random.random() < SHARE / 2:
            raise web.HTTPBadGateway


@asynccontextmanager
async def ground(suite: Suite, folder: Path, chance: random.Random) -> AsyncIterator[Ground]:
    """All components started, each behind its proxy."""
    # Reviews by a frozen core must end before the request that they belong to.
    suite.webhook_timeout = 5
    async with all_behind(suite, COMPONENTS, folder) as proxies:
        yield Ground(suite, proxies, chance)
