"""Spreads reconciles of many keys over time, so that a change that affects thousands does not delay other work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from kubefoundry_sdk._runtime.store import Key

RATE: Final = 25.0
"""Keys a second: a thousand are reported within 40 s with little effect on other work (a burst of changes is
processed at some hundred a second)."""


class PacedQueue:
    """A queue that releases its keys slowly.

    `release` is called with a key when its turn has come. A key that is waiting already is not added again.
    """

    def __init__(self, release: Callable[[Key], None]) -> None:
        self._release = release
        self._waiting: dict[Key, None] = {}
        self._not_empty = asyncio.Event()

    def add(self, keys: Iterable[Key]) -> None:
        """Add the keys that are not waiting yet."""
        self._waiting.update(dict.fromkeys(keys))
        if self._waiting:
            self._not_empty.set()

    def __contains__(self, key: Key) -> bool:
        """Check whether the key is still waiting."""
        return key in self._waiting

    async def run(self) -> None:
        """Release waiting keys in order until cancelled."""
        while True:
            await self._not_empty.wait()
            key = next(iter(self._waiting))
            del self._waiting[key]
            if not self._waiting:
                self._not_empty.clear()
            self._release(key)
            await asyncio.sleep(1 / RATE)
