"""Fair queueing: items in the order of their arrival within a namespace, and the namespaces take turns.

So a tenant who changes a thousand objects at once waits for them, and nobody else does. The API server's own fair
queueing treats requests alike (Kubernetes, API Priority and Fairness: one queue for each flow).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Container
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """A queue that serves namespaces in turn.

    `append` and `popleft` take the same time, however many items and namespaces there are. Only namespaces to skip
    take more.
    """

    def __init__(self) -> None:
        self._items: dict[str, deque[Item]] = {}
        """Items by namespace, in the order of the namespaces' turns. No queue is empty."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, namespace: str, item: Item) -> None:
        """Add an item behind the items of its own namespace."""
        self._items.setdefault(namespace, deque()).append(item)
        self._count += 1

    def has_items(self, namespace: str) -> bool:
        """Check whether an item of the namespace is waiting."""
        return namespace in self._items

    def next_namespace(self, skip: Container[str] = ()) -> str | None:
        """Return the namespace whose turn it is, leaving out those to skip. Return None if there is none."""
        return next((namespace for namespace in self._items if namespace not in skip), None)

    def popleft(self, skip: Container[str] = ()) -> Item:
        """Remove and return the first item of the namespace whose turn it is. Raise IndexError if there is none.

        The namespaces in `skip` keep their items and their places.
        """
        namespace = self.next_namespace(skip)
        if namespace is None:
            raise IndexError("nothing is waiting")
        items = self._items.pop(namespace)
        if len(items) > 1:
            self._items[namespace] = items  # behind all others
        self._count -= 1
        return items.popleft()

    def drop(self) -> Item:
        """Remove and return the last item of the namespace that has most. Raise IndexError if there is none."""
        namespace = max(self._items, key=lambda name: len(self._items[name]), default=None)
        if namespace is None:
            raise IndexError("nothing is waiting")
        self._count -= 1
        item = self._items[namespace].pop()
        if not self._items[namespace]:
            del self._items[namespace]
        return item


class FairLimit:
    """A semaphore with `at_once` places. While all are taken, waiting namespaces take turns."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue()

    @asynccontextmanager
    async def turn(self, namespace: str) -> AsyncIterator[None]:
        """Wait for the namespace's turn, and hold it."""
        if self._free:
            self._free -= 1
        else:
            await self._next(namespace)
        try:
            yield
        finally:
            self._leave()

    async def _next(self, namespace: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(namespace, turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._leave()  # the turn had come already
            raise

    def _leave(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.cancelled():
                turn.set_result(None)
                return
        self._free += 1
