"""A selector in kopf: `kopf run --standalone --all-namespaces selector.py`.

The program only makes the choice: of the providers that can serve a model, the one that serves the fewest models.
`keep_or_choose`, a pure function, keeps selections and handles refusals. Lease, queue and status come from the SDK.
kopf is only the source of events (docs/kopf.md). It does not report deletions during an outage of the API server,
which does no harm: a write to a deleted object is refused, and a deleted registration sends no heartbeat.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, cast

import kopf

import kubefoundry_sdk.kopf
from kubefoundry_sdk import Client, Object, Settings
from kubefoundry_sdk.selector import (
    MODEL_DEPLOYMENTS,
    PROVIDER_CONFIGS,
    SELECTOR_LEASE,
    SELECTOR_MANAGER,
    Holder,
    Key,
    LeaseLost,
    Store,
    WorkQueue,
    load_credentials,
    serve_health,
    supervise,
    write_status,
)
from kubefoundry_selector import Choice, Provider, Registry, Request, keep_or_choose

SETTINGS = Settings.from_environment()
kopf.on.login()(kubefoundry_sdk.kopf.login)


class Selector:
    def __init__(self, client: Client) -> None:
        identity = SETTINGS.identity or os.environ.get("POD_UID") or f"{socket.gethostname()}-{os.getpid()}"
        self.client = client
        self.deployments = Store(managers=frozenset({SELECTOR_MANAGER}))
        self.registry = Registry(time.monotonic, SETTINGS.heartbeat_timeout)
        self.queue = WorkQueue("selector", self.select)
        self.lease = Holder(client, name=SELECTOR_LEASE, namespace=SETTINGS.namespace, identity=identity)

    def choose(self, request: Request, candidates: Sequence[Provider]) -> Choice | None:
        served = Counter(
            ((obj.get("status") or {}).get("provider") or {}).get("name")
            for obj in self.deployments.objects()
        )
        name = min((served[provider.name], provider.name) for provider in candidates)[1]
        return Choice(name, f"serves the fewest models ({served[name]}) → {name}")

    async def select(self, key: Key) -> None:
        live = self.deployments.get(key)
        if live is None:
            return
        fields = keep_or_choose(live, self.registry.providers(), self.choose)
        if fields is not None:
            await write_status(
                self.client, self.deployments, MODEL_DEPLOYMENTS, live, fields, manager=SELECTOR_MANAGER
            )

    async def lead(self) -> None:
        """Decide while this process holds the Lease, from which core learns that a selector runs."""
        while True:
            await self.lease.take()
            work = asyncio.create_task(self.queue.run(SETTINGS.workers))
            try:
                with suppress(LeaseLost):
                    await self.lease.keep()
            finally:
                work.cancel()
                await asyncio.wait([work])

    def ready(self) -> str | None:
        return None if self.lease.holds else "waiting for the Lease"


running: Selector | None = None
resources = AsyncExitStack()


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
    global running
    settings.posting.enabled = False
    settings.networking.error_backoffs = (0.1, 0.2, 0.5, 1, 1, 2, 2)
    client = await resources.enter_async_context(Client(load_credentials(None), user_agent="kopf-selector"))
    running = Selector(client)
    ports = {"health_port": SETTINGS.health_port, "metrics_port": SETTINGS.metrics_port}
    resources.push_async_callback(await serve_health(**ports, healthy=lambda: None, ready=running.ready))
    leading = asyncio.create_task(supervise("selector", running.lead))

    async def end() -> None:
        leading.cancel()
        await asyncio.wait([leading])

    resources.push_async_callback(end)


@kopf.on.cleanup()
async def end(**_: Any) -> None:
    await resources.aclose()


@kopf.on.event(MODEL_DEPLOYMENTS.group, MODEL_DEPLOYMENTS.version, MODEL_DEPLOYMENTS.plural)
async def deployment(event: kopf.RawEvent, **_: Any) -> None:
    if running is None:
        return
    obj = cast(Object, dict(event["object"]))
    if event["type"] == "DELETED":
        running.deployments.remove(obj)
    else:
        running.deployments.put(obj)
        running.queue.add((obj["metadata"]["namespace"], obj["metadata"]["name"]))


@kopf.on.event(PROVIDER_CONFIGS.group, PROVIDER_CONFIGS.version, PROVIDER_CONFIGS.plural)
async def registration(event: kopf.RawEvent, name: str, **_: Any) -> None:
    """Decide again about all models, unless only the heartbeat has changed."""
    deleted = event["type"] == "DELETED"
    if running and running.registry.see(name, None if deleted else cast(Object, dict(event["object"]))):
        for obj in running.deployments.objects():
            running.queue.add((obj["metadata"]["namespace"], obj["metadata"]["name"]))
