"""A provider of many models stops answering: all are reported in turn, and other work is not delayed."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.conditions import rfc3339
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._runtime.paced_queue import RATE
from support.audit import AuditLog, until_logged
from support.deployments import GPU, model_deployment
from support.registrations import register
from support.waiting import reason, until_deployment

pytestmark = pytest.mark.integration

MANY = 300
SILENCE = 10.0
"""Seconds, in place of 3 minutes: ten heartbeats of the test's."""

IN_TURN = MANY / RATE
"""Seconds that it takes to tell them all."""

BOUND = 300.0
"""Seconds that bound a wait for them."""

WORKERS = 8
"""Reconciles at once, by default."""

SOON = MANY / 2
"""A new deployment is looked at before that many of the others have been reported: it does not wait for its turn."""


@pytest.fixture
def suite(fresh: Suite) -> Suite:
    fresh.install("core", environment={"KUBEFOUNDRY_HEARTBEAT_TIMEOUT": str(SILENCE)})
    fresh.start("core")
    return fresh


@asynccontextmanager
async def beating(api: Client, name: str) -> AsyncIterator[None]:
    """The heartbeat of a provider of which there is nothing else, for the time of the block."""

    async def beat() -> None:
        head = {
            "apiVersion": PROVIDER_CONFIGS.api_version,
            "kind": PROVIDER_CONFIGS.kind,
            "metadata": {"name": name},
        }
        while True:
            status = {"ready": True, "lastHeartbeat": rfc3339(datetime.now(UTC))}
            await api.apply_status(PROVIDER_CONFIGS, {**head, "status": status}, manager=f"{name}-provider")
            await asyncio.sleep(1)

    await register(api, name)
    async with asyncio.TaskGroup() as group:
        beats = group.create_task(beat())
        try:
            yield
        finally:
            beats.cancel()


async def create(api: Client, namespace: str, name: str, provider: str) -> None:
    body = model_deployment(name, namespace, GPU, provider=provider)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")


async def create_many(api: Client, namespace: str) -> None:
    """Some at a time: the heartbeat goes the same way."""
    names = iter(f"m-{number}" for number in range(MANY))

    async def some() -> None:
        for name in names:
            await create(api, namespace, name, "acme")

    await asyncio.gather(*(some() for _ in range(8)))


async def until_all(api: Client, namespace: str, holds: Callable[[Object], bool], left: int = 0) -> None:
    """Until `holds` is true of all, or all but that many, as a watch reports."""
    items, version = await api.list(MODEL_DEPLOYMENTS, namespace)
    missing = {item["metadata"]["name"] for item in items if not holds(item)}
    if len(missing) <= left:
        return
    async with asyncio.timeout(BOUND):
        events = api.watch(MODEL_DEPLOYMENTS, namespace, resource_version=version, seconds=600, silence=BOUND)
        async for event in events:
            if event["type"] == "MODIFIED" and holds(event["object"]):
                missing.discard(event["object"]["metadata"]["name"])
            if len(missing) <= left:
                return


def received(obj: Object) -> bool:
    return reason(obj, "ProviderHealthy") == "HeartbeatLost"


async def test_they_are_reported_in_turn(
    suite: Suite, api: Client, namespace: str, record_property: Callable[[str, object], None]
) -> None:
    async with beating(api, "other"):
        async with beating(api, "acme"):
            await create_many(api, namespace)
            await until_all(api, namespace, lambda obj: reason(obj, "ProviderSelected") is not None)
        log = AuditLog(suite)

        # which of them is the first is not promised
        await until_all(api, namespace, received, left=MANY - 1)
        started = time.perf_counter()
        await create(api, namespace, "new", "other")
        await until_deployment(
            api, "new", namespace, lambda obj: reason(obj, "ProviderSelected") == "ExplicitlySelected"
        )
        looked_at = time.perf_counter() - started
        # One more provider makes core look at every deployment, and tells none of them before its turn.
        await register(api, "third")
        await until_all(api, namespace, lambda obj: received(obj) or obj["metadata"]["name"] == "new")

    writes = await until_logged(lambda: patches(log, namespace), lambda found: len(by_name(found)) > MANY)
    seconds = Counter(arrived(entry) for entry in writes)
    record_property("reported a second", max(seconds.values()))
    record_property("new one looked at after", looked_at)
    print(
        f"{len(writes)} writes in {len(seconds)} s, {max(seconds.values())} in one at most; new: {looked_at:.3f} s"
    )
    assert len(by_name(writes)) == MANY + 1
    # A core that loses its Lease to a stalled disk does not know what became of the writes under way.
    losses = suite.components["core"].log.read_text().count("competing for it again")
    assert len(writes) <= MANY + 1 + WORKERS * losses
    assert max(seconds) - min(seconds) >= IN_TURN - 2
    assert [entry["objectRef"]["name"] for entry in writes].index("new") < SOON


def patches(log: AuditLog, namespace: str) -> list[dict[str, Any]]:
    return [
        entry for entry in log.requests("core", namespace, "modeldeployments") if entry["verb"] == "patch"
    ]


def by_name(writes: list[dict[str, Any]]) -> Counter[str]:
    """Return the number of writes to each object."""
    return Counter(entry["objectRef"]["name"] for entry in writes)


def arrived(entry: dict[str, Any]) -> int:
    """The second in which the API server got the request."""
    return int(datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp())
