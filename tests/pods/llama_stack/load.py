"""Steady requests to a llama-stack server whose provider has a service."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from pods.llama_stack.distributions import STARTED, Server

PAUSE: Final = 0.25
"""Seconds between two requests of a client. llama-stack 0.7.3 stores each answer in the background. It hangs for 30 s
and more when over 15 of these queries wait, which four clients without such a pause cause on a busy machine."""
BUSY: Final = 10
"""Requests after which the server is busy."""
PREFIX: Final = "shout: PING"
"""The beginning of each good answer."""


@dataclass(slots=True)
class Load:
    """Requests to a server, one after another for each client.

    failed: the moments at which failed requests were sent. answers: the rest of each good answer, counted.
    busy: set after BUSY requests.
    """

    server: Server
    sent: int = 0
    failed: list[float] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    busy: asyncio.Event = field(default_factory=asyncio.Event)
    _answered: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def run(self) -> None:
        """Send requests until cancelled."""
        while True:
            self.sent += 1
            if self.sent > BUSY:
                self.busy.set()
            began = time.monotonic()
            try:
                answer = await self.server.chat("shout/echo-1", "ping")
                is_good = answer.status == 200 and answer.body.startswith(PREFIX)
            except aiohttp.ClientError:
                is_good = False
            if is_good:
                async with self._answered:
                    self.answers[answer.body.removeprefix(PREFIX)] += 1
                    self._answered.notify_all()
            else:
                self.failed.append(began)
            await asyncio.sleep(PAUSE)

    async def until(self, holds: Callable[[Counter[str]], bool]) -> None:
        """Wait until `holds` is true of the answers to requests from now on."""
        before = self.answers.copy()
        async with asyncio.timeout(STARTED), self._answered:
            await self._answered.wait_for(lambda: holds(self.answers - before))
