"""Clients that repeatedly send requests to a model and count the outcomes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

CLIENTS: Final = 3
"""Concurrent clients; each sends its next request once it has an answer."""

PAUSE: Final = 0.02
"""Seconds between an answer and the next request."""

QUESTION: Final = {"messages": [{"role": "user", "content": "ping"}], "max_tokens": 8}


@dataclass(slots=True)
class Count:
    """The number of completed requests, and of failures by reason."""

    sent: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    @property
    def failed(self) -> int:
        return self.failures.total()


@asynccontextmanager
async def asking(client: Client, url: str, model: str) -> AsyncIterator[Count]:
    """Send chat requests to an endpoint during the block. At its end, wait for pending requests."""
    count = Count()
    end = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(_ask(client, f"{url}/v1/chat/completions", model, count, end))
        try:
            yield count
        finally:
            end.set()


async def _ask(client: Client, url: str, model: str, count: Count, end: asyncio.Event) -> None:
    while not end.is_set():
        try:
            answer = await client.send(url, {"model": model, **QUESTION})
            if not answer["choices"][0]["message"]["content"]:
                count.failures["an empty answer"] += 1
        except (ApiError, Unreachable) as error:
            count.failures[str(error)] += 1
        count.sent += 1
        await asyncio.sleep(PAUSE)
