"""Two replicas of each component: the leader is killed, or frozen in the middle of a turn."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web

from kubefoundry_local.suite import PROBE, Component, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.names import CORE_MANAGER, SELECTOR_MANAGER, provider_manager
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._runtime.lease import DURATION
from support.chaos.state import served
from support.crashes.kill import WRITES
from support.crashes.left import left
from support.deployments import GPU, model_deployment
from support.kinds import UPSTREAM
from support.played_pods import node
from support.proxy import Fault, Proxy, all_behind
from support.replicas import second_replicas
from support.suites import running_suite
from support.waiting import SECONDS, until_deployment

pytestmark = [pytest.mark.integration, pytest.mark.apart]

PROVIDERS = (*UPSTREAM, "direct")
MANAGERS = {"core": CORE_MANAGER, "selector": SELECTOR_MANAGER} | {
    name: provider_manager(name) for name in PROVIDERS
}
"""The field manager of each component."""

LONGEST = DURATION + (1 if os.environ.get("KUBEFOUNDRY_FAULTS") == "all" else DURATION)
"""Seconds from the death of a leader to the first write of the other replica, at most. A run of all tests is busy."""


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Suite]:
    with running_suite(tmp_path / "plane", *UPSTREAM, plane_flags=["--all-controllers"]) as made:
        yield made


@pytest.fixture
async def proxies(fresh: Suite, tmp_path: Path) -> AsyncIterator[dict[str, Proxy]]:
    """Run all components, each behind a proxy."""
    async with all_behind(fresh, tuple(MANAGERS), tmp_path) as made:
        yield made


async def create_models(api: Client, namespace: str) -> None:
    """Create a model of each provider, and two for the selector and core."""
    for name in MANAGERS:
        provider = name if name in PROVIDERS else None
        body = model_deployment(name, namespace, GPU, provider=provider)
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")


def written_by(manager: str, obj: Object) -> bool:
    """Check whether the manager has written to the object."""
    return any(entry["manager"] == manager for entry in obj["metadata"]["managedFields"])


async def test_other_replica_takes_over_when_the_leader_is_killed(
    fresh: Suite, api: Client, namespace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await asyncio.to_thread(fresh.start, *MANAGERS)
    loop = asyncio.get_running_loop()

    async def taken_over(name: str) -> float:
        await until_deployment(api, name, namespace, lambda obj: written_by(MANAGERS[name], obj))
        return loop.time() - killed

    with second_replicas(fresh, tuple(MANAGERS), tmp_path / "second"):
        killed = loop.time()
        for name in MANAGERS:
            fresh.components[name].kill()
        await create_models(api, namespace)
        async with node(api, namespace):
            seconds = dict(zip(MANAGERS, await asyncio.gather(*map(taken_over, MANAGERS)), strict=True))
            for name in MANAGERS:
                await until_deployment(api, name, namespace, served)
    with capsys.disabled():
        print("\nseconds from kill to take-over:", {name: round(value, 1) for name, value in seconds.items()})

    assert max(seconds.values()) <= LONGEST


async def test_frozen_leader_changes_nothing_when_it_is_thawed(
    fresh: Suite, api: Client, namespace: str, proxies: dict[str, Proxy], tmp_path: Path
) -> None:
    """Events are still sent: about what the leader saw before the freeze, or about the write that froze it.

    No other replica reports that write, because its status is in place.
    """
    frozen = {name: asyncio.Event() for name in MANAGERS}
    frozen_at: dict[str, datetime] = {}
    last_writes: dict[str, web.Request] = {}
    thawed = asyncio.Event()
    writes: list[tuple[str, web.Request]] = []
    events: list[tuple[str, web.Request]] = []

    def freezing(name: str, request: web.Request) -> Fault | None:
        """Freeze the component at its first write for a model. Its next step comes with the answer."""
        component = fresh.components[name]
        if request.method not in WRITES or "/leases" in request.path:
            return None
        if thawed.is_set():
            (events if is_event(request) else writes).append((name, request))
        elif f"/namespaces/{namespace}/" in request.path and not frozen[name].is_set():
            assert component.process is not None
            component.process.send_signal(signal.SIGSTOP)
            frozen_at[name] = datetime.now(UTC)
            last_writes[name] = request
            frozen[name].set()
        return None

    for name, proxy in proxies.items():
        proxy.rule = partial(freezing, name)
    with second_replicas(fresh, tuple(MANAGERS), tmp_path / "second"):
        # A webhook of a frozen core would delay each request to its time-out.
        kinds = "validatingwebhookconfiguration,mutatingwebhookconfiguration"
        fresh.plane.kubectl("delete", kinds, "kubefoundry-core")
        async with node(api, namespace), asyncio.timeout(2 * SECONDS):
            await create_models(api, namespace)
            for name in MANAGERS:
                await frozen[name].wait()
                await until_deployment(api, name, namespace, served)
            before = await left(api, namespace)
            thawed.set()
            for name in MANAGERS:
                thaw(fresh.components[name])
            for name in MANAGERS:
                await until_competing(fresh.components[name])

            assert writes == [], "of the former leader"
            for name, request in events:
                event = json.loads(await request.read())
                is_older = datetime.fromisoformat(event["eventTime"]) <= frozen_at[name]
                assert is_older or event["reason"].encode() in await last_writes[name].read(), event
            assert await left(api, namespace) == before
            assert all(fresh.components[name].running for name in MANAGERS)


def is_event(request: web.Request) -> bool:
    """Check whether the request creates an Event."""
    return request.method == "POST" and request.path.endswith("/events")


def thaw(component: Component) -> None:
    """Let a frozen process continue."""
    assert component.process is not None
    component.process.send_signal(signal.SIGCONT)


async def until_competing(component: Component) -> None:
    """Wait until the former leader has found out that the other replica leads."""
    while "competing for it again" not in await asyncio.to_thread(component.log.read_text):  # noqa: ASYNC110
        await asyncio.sleep(PROBE)
