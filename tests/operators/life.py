"""The life of a ModelDeployment `m`, watched from beginning to end: what we say, what KubeRay says, what serves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from operators.table import Row, ours, theirs
from support.kinds import RAY_SERVICES
from support.waiting import phase

NAME: Final = "m"
SERVICE: Final = f"{NAME}-serve-svc"
POLL: Final = 0.1
"""Seconds between two questions whether the model answers."""

LAG: Final = 3.5
"""Seconds that our phase may be behind what serves: KubeRay looks every 2, its write and ours come after."""


@dataclass(slots=True)
class Span:
    """How long something has been the case without a break, and the longest of these times."""

    since: float | None = None
    longest: float = 0.0

    def see(self, case: bool, now: float) -> None:
        if not case:
            self.since = None
        else:
            self.since = now if self.since is None else self.since
            self.longest = max(self.longest, now - self.since)


@dataclass(slots=True)
class Life:
    """phases: ours, as they followed one another since the step began. context: `max_model_len` of the model that
    answered last, None where none did.

    dead: Running while nothing answered. alive: Failed while it answered.
    """

    api: Client
    namespace: str
    rows: list[Row]
    latest: dict[str, Object | None] = field(default_factory=dict)
    phases: list[str] = field(default_factory=list)
    context: int | None = None
    silent: Span = field(default_factory=Span)
    dead: Span = field(default_factory=Span)
    alive: Span = field(default_factory=Span)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def serves(self) -> bool:
        """Whether the model answered last."""
        return self.context is not None

    @property
    def generation(self) -> int:
        """Of the ModelDeployment as last seen, 0 where there is none."""
        found = self.latest.get("modeldeployments")
        return int(found["metadata"]["generation"]) if found else 0

    @property
    def deployment(self) -> Object:
        """As last seen."""
        found = self.latest.get("modeldeployments")
        assert found is not None
        return found

    @property
    def service(self) -> Object | None:
        """The RayService as last seen."""
        return self.latest.get("rayservices")

    async def step(
        self,
        what: str,
        action: Awaitable[Object | None],
        holds: Callable[[], Any],
        *,
        seconds: float = 60,
    ) -> None:
        """Does it, waits until `holds`, and notes both statuses. Fails with what was seen last.

        An action that changes the ModelDeployment returns it: nothing older is looked at.
        """
        self.phases = [] if self.latest.get("modeldeployments") is None else [str(phase(self.deployment))]
        self.silent, self.dead, self.alive = Span(), Span(), Span()
        began = time.monotonic()
        written = await action
        generation = written["metadata"]["generation"] if written else 0
        try:
            async with asyncio.timeout(seconds):
                while not (self.generation >= generation and holds()):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(
                f"{what}: not in {seconds} s. Ours: {ours(self.latest.get('modeldeployments'))}; "
                f"KubeRay's: {theirs(self.service)}; it {'answers' if self.serves else 'does not answer'}"
            ) from None
        self.rows.append(
            Row(
                what=what,
                seconds=time.monotonic() - began,
                phases=tuple(self.phases),
                ours=ours(self.latest.get("modeldeployments")),
                theirs=theirs(self.service),
                silent=self.silent.longest,
                serves=self.serves,
            )
        )
        assert self.dead.longest <= LAG, (
            f"{what}: Running for {self.dead.longest:.1f} s while nothing answered"
        )
        assert self.alive.longest <= LAG, f"{what}: Failed for {self.alive.longest:.1f} s while it answered"

    async def follow(self, kind: Kind, since: str) -> None:
        """Keeps the latest state of object `m` of that kind from that resource version on, until cancelled."""
        async for event in self.api.watch(
            kind,
            self.namespace,
            resource_version=since,
            seconds=3000,
            silence=3000,
            selector={"fieldSelector": f"metadata.name={NAME}"},
        ):
            if event["type"] != "BOOKMARK":
                self._take(kind, None if event["type"] == "DELETED" else event["object"])

    async def ask(self) -> None:
        """Asks the model again and again through the API server's proxy to its Service, until cancelled."""
        url = f"/api/v1/namespaces/{self.namespace}/services/{SERVICE}:8000/proxy/v1/models"
        while True:
            try:
                [model] = (await self.api.read(url))["data"]
                context = model["max_model_len"]
            except ApiError:
                context = None
            serves = context is not None
            now = time.monotonic()
            seen = self.latest.get("modeldeployments")
            by_us = (
                seen is not None and (seen.get("status") or {}).get("provider", {}).get("name") == "kuberay"
            )
            self.silent.see(not serves, now)
            self.dead.see(by_us and not serves and phase(seen or {}) == "Running", now)
            self.alive.see(serves and phase(seen or {}) == "Failed", now)
            if context != self.context:
                self.context = context
                self._changed.set()
            await asyncio.sleep(POLL)

    def _take(self, kind: Kind, obj: Object | None) -> None:
        self.latest[kind.plural] = obj
        if (
            kind is MODEL_DEPLOYMENTS
            and obj is not None
            and (now := phase(obj))
            and self.phases[-1:] != [now]
        ):
            self.phases.append(now)
        self._changed.set()


@asynccontextmanager
async def watched(api: Client, namespace: str, rows: list[Row]) -> AsyncIterator[Life]:
    """A life in an empty namespace."""
    life = Life(api, namespace, rows)
    since = {kind: (await api.list(kind, namespace))[1] for kind in (MODEL_DEPLOYMENTS, RAY_SERVICES)}
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(life.follow(kind, version)) for kind, version in since.items()]
        running.append(tasks.create_task(life.ask()))
        try:
            yield life
        finally:
            for task in running:
                task.cancel()
