"""A tenant with hundreds of objects, or of servers that hang, is waited for by nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest
from aiohttp import web

from kubefoundry_llamastack.server_poll import AT_ONCE as POLLED_AT_ONCE
from kubefoundry_llamastack.server_poll import ServerPoll
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._provider.contract import Deployment, Endpoint
from kubefoundry_sdk._provider.health.verification import AT_ONCE as VERIFIED_AT_ONCE
from kubefoundry_sdk._provider.health.verification import Verification
from kubefoundry_sdk._runtime.store import Key
from kubefoundry_sdk._runtime.supervision import Work
from kubefoundry_sdk._runtime.workqueue import WorkQueue
from support.waiting import SECONDS

CROWD: Final = 100
"""Objects of the tenant who has many."""
ALONE: Final = ("other", "alone")


class Gate:
    """Lets in one at a time, and keeps the order in which they arrived."""

    def __init__(self) -> None:
        self.arrived: list[str] = []
        self._some = asyncio.Event()
        self._open = asyncio.Semaphore(0)

    async def enter(self, namespace: str) -> None:
        """Waits to be let in; the other tenant's server answers at once."""
        self.arrived.append(namespace)
        self._some.set()
        if namespace != ALONE[0]:
            await self._open.acquire()

    async def until(self, number: int) -> None:
        """Until so many have arrived."""
        while len(self.arrived) < number:
            self._some.clear()
            await self._some.wait()

    def let_in(self) -> None:
        self._open.release()

    def open(self) -> None:
        """Lets in all that have arrived."""
        for _ in self.arrived:
            self._open.release()


def crowd() -> list[Key]:
    """The crowd's keys first, then the one of the other tenant."""
    return [*(("crowd", f"m{number}") for number in range(CROWD)), ALONE]


async def test_reconcile_waits_for_one_of_each_other_namespace_only() -> None:
    order: list[Key] = []
    done = asyncio.Event()

    async def reconcile(key: Key) -> None:
        order.append(key)
        if len(order) == CROWD + 1:
            done.set()

    queue = WorkQueue("t", reconcile)
    for key in crowd():
        queue.add(key)
    working = asyncio.create_task(queue.run(1))
    async with asyncio.timeout(SECONDS):
        await done.wait()
    working.cancel()
    await asyncio.wait([working])

    assert order.index(ALONE) <= 1
    assert [key for key in order if key != ALONE] == crowd()[:-1]


@pytest.mark.parametrize("hangs", ["the list of models", "the completion"])
async def test_endpoint_is_verified_beside_a_hundred_hanging(hangs: str) -> None:
    gate, changed = Gate(), asyncio.Queue[Key]()

    async def ask(namespace: str, endpoint: Endpoint) -> frozenset[str]:
        if hangs == "the list of models":
            await gate.enter(namespace)
        return frozenset({"model"})

    async def attempt(namespace: str, endpoint: Endpoint, model: str) -> None:
        if hangs == "the completion":
            await gate.enter(namespace)

    running: set[asyncio.Task[None]] = set()

    def spawn(work: Work) -> asyncio.Task[None]:
        async def run() -> None:
            await work()

        task = asyncio.get_running_loop().create_task(run())
        running.add(task)
        return task

    verification = Verification(
        ask, spawn, changed.put_nowait, always=True, attempt=attempt, answers=hangs == "the completion"
    )
    spec = ModelDeploymentSpec.model_validate({"model": {"id": "org/model"}, "engine": {"type": "vllm"}})
    for namespace, name in crowd():
        deployment = Deployment(name, namespace, f"uid-{name}", 1, spec)
        verification.verdict(
            deployment, {"metadata": {"uid": f"u-{name}", "generation": 1}}, Endpoint(name, 8000)
        )
    async with asyncio.timeout(SECONDS):
        await gate.until(VERIFIED_AT_ONCE)
        gate.let_in()
        while await changed.get() != ALONE:
            gate.let_in()
    for task in running:
        task.cancel()
    await asyncio.wait(running)

    assert gate.arrived.index(ALONE[0]) < CROWD / 4


@asynccontextmanager
async def servers(gate: Gate) -> AsyncIterator[str]:
    """The address of servers that answer once they are let in; the namespace is the first part of the path."""

    async def answer(request: web.Request) -> web.Response:
        if request.path.endswith("/providers"):
            await gate.enter(request.path.split("/")[1])
        return web.json_response({"data": [], "version": "1"})

    application = web.Application()
    application.router.add_get("/{tail:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        gate.open()
        await runner.cleanup()


async def test_server_is_polled_beside_a_hundred_hanging_ones() -> None:
    gate, changed = Gate(), asyncio.Queue[Key]()
    async with servers(gate) as root:
        poll = ServerPoll(changed.put_nowait)
        for key in crowd():
            poll.follow(key, f"{root}/{key[0]}", pods="1 of 1")
        polling = asyncio.create_task(poll.run())
        async with asyncio.timeout(SECONDS):
            await gate.until(POLLED_AT_ONCE)
            gate.let_in()
            while await changed.get() != ALONE:
                gate.let_in()
        polling.cancel()
        await asyncio.wait([polling])

    assert gate.arrived.index(ALONE[0]) < CROWD / 4
