"""The replica that works: the holder of the Lease or, without leader election, every replica."""

from __future__ import annotations

import asyncio
import logging

from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import Fenced
from kubefoundry_sdk._runtime import metrics
from kubefoundry_sdk._runtime.lease import Holder, LeaseLost
from kubefoundry_sdk._runtime.supervision import Work

log = logging.getLogger(__name__)


class Leadership:
    """Whether this replica leads, by the Lease of that name. `elected`: whether only its holder works."""

    def __init__(self, lease: str | None, *, elected: bool) -> None:
        self.lease = lease
        self.leading = asyncio.Event()
        """Set while this replica does the work."""
        self._elected = elected
        self._holder: Holder | None = None
        self._led: set[asyncio.Task[None]] = set()

    @property
    def refused(self) -> str | None:
        """Return why the Lease can never be held, or None."""
        return self._holder.refused if self._holder else None

    def fence(self) -> None:
        """Raise Fenced if this replica may not write. Called before each write.

        The check reads the Lease's age instead of a stored result, because the stored result of a process that was
        frozen is out of date.
        """
        if self._elected and (self._holder is None or not self._holder.holds):
            raise Fenced(f"lease {self.lease} is not held, so nothing is written")

    def only_leading(self, work: Work) -> Work:
        """Start the work whenever this replica leads, and cancel it when it no longer does."""

        async def led() -> None:
            while True:
                await self.leading.wait()
                task = asyncio.ensure_future(work())
                self._led.add(task)
                try:
                    await asyncio.wait([task])
                    if not task.cancelled():
                        return task.result()
                finally:
                    self._led.discard(task)
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)

        return led

    async def run(self, client: Client, *, namespace: str, identity: str) -> None:
        """Compete for the Lease until cancelled. The client has no fence."""
        if not self._elected:
            self.leading.set()
        if self.lease is None:
            return
        self._holder = Holder(client, name=self.lease, namespace=namespace, identity=identity)
        is_held = metrics.LEADING.labels(self.lease)
        is_held.set(0)
        while True:
            await self._holder.take()
            self.leading.set()
            is_held.set(1)
            try:
                await self._holder.keep()
            except LeaseLost as error:
                log.warning("lease lost, competing for it again", extra=logs.values(error=str(error)))
            finally:
                is_held.set(0)
            if self._elected:
                await self._stand_down()

    async def _stand_down(self) -> None:
        """Stop the work of the former leader: its view may be out of date."""
        self.leading.clear()
        led = list(self._led)
        for task in led:
            task.cancel()
        await asyncio.gather(*led, return_exceptions=True)
