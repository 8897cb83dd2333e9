"""Kill a component at its k-th write in a namespace, by a proxy that counts the writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from aiohttp import web

from kubefoundry_local.suite import Component, Suite
from support.metrics import Series, until_scraped
from support.proxy import Fault, Proxy, behind

WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
T = TypeVar("T")


@dataclass(slots=True)
class Killer:
    """Counts the writes of a component, and kills its process at one of them.

    Attributes:
        component: The component.
        namespace: The namespace whose writes are counted.
        point: The number of writes that reach the API server before the process ends. The process does not get
            the answer to the last one. None kills nothing.
        writes: The number of counted writes.
        killed: Set when the process was killed.
    """

    component: Component
    namespace: str = ""
    point: int | None = None
    writes: int = 0
    killed: asyncio.Event = field(default_factory=asyncio.Event)

    def attach(self, proxy: Proxy) -> None:
        """Count the requests that pass the proxy."""
        proxy.rule, proxy.done = self._before, self._after

    def arm(self, namespace: str, point: int | None) -> None:
        """Count the writes in the namespace from now on."""
        self.namespace, self.point = namespace, point
        self.writes = 0
        self.killed.clear()

    async def survive(self, outcome: Awaitable[T]) -> T:
        """Await the outcome, and restart the component meanwhile if it is killed.

        Return when the component is running and has nothing left to do.
        """
        restarting = asyncio.create_task(self._restart())
        try:
            result = await outcome
            # A watch shows the last write before its sender has the answer, so the process may still be killed.
            with suppress(OSError):
                await until_idle(self.component)
            self.point = None
            if self.killed.is_set():
                await restarting
        finally:
            restarting.cancel()
            await asyncio.gather(restarting, return_exceptions=True)
        await until_idle(self.component)
        return result

    async def _restart(self) -> None:
        await self.killed.wait()
        self.component.start()
        await asyncio.to_thread(self.component.wait_ready)

    def _before(self, request: web.Request) -> Fault | None:
        if self._counts(request):
            if self.point == 0:
                self._kill()
            if self.killed.is_set() and not self.component.running:
                # Sent before the process ended. A request that is on its way when a process dies may also be lost.
                return Fault(503, "ServiceUnavailable")
            self.writes += 1
        return None

    def _after(self, request: web.Request) -> None:
        if self._counts(request) and self.point == self.writes:
            self._kill()

    def _counts(self, request: web.Request) -> bool:
        """Check for a write. Events are sent in the background, between any two writes."""
        return (
            request.method in WRITES
            and f"/namespaces/{self.namespace}/" in request.path
            and not request.path.endswith("/events")
        )

    def _kill(self) -> None:
        if not self.killed.is_set():
            self.component.kill()
            self.killed.set()


async def until_idle(component: Component) -> None:
    """Wait until the component has reconciled all that it has seen."""
    await until_scraped(component, _is_idle)


def _is_idle(series: Series) -> bool:
    pending = [value for (name, _), value in series.items() if name == "kubefoundry_reconciliations_pending"]
    return bool(pending) and not any(pending)


@asynccontextmanager
async def crashing(suite: Suite, name: str, folder: Path) -> AsyncIterator[Killer]:
    """Restart the component behind a proxy during the block, and yield its killer."""
    async with behind(suite, name, folder) as proxy:
        made = Killer(suite.components[name])
        made.attach(proxy)
        yield made
