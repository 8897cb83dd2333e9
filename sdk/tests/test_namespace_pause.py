"""On a busy API server, a namespace with more keys pauses, and no other namespace or queue waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from kubefoundry_sdk._api.kinds import CONFIG_MAPS
from kubefoundry_sdk._cluster import congestion
from kubefoundry_sdk._cluster.congestion import LEAST, LONGEST, Congestion, Window
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._runtime import options
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk._runtime.store import Key, Store
from kubefoundry_sdk._runtime.workqueue import Reconcile, WorkQueue
from support.waiting import SECONDS
from support.wire import refusal, wire

LOUD: list[Key] = [("loud", "a"), ("loud", "b"), ("loud", "c")]
QUIET: Key = ("quiet", "a")
WORKERS = 8
"""The default of `--workers`."""


def paced(congestion: Congestion, reconcile: Reconcile) -> WorkQueue:
    return WorkQueue("t", reconcile, room=congestion.room, pause=congestion.pause_after)


@asynccontextmanager
async def running(*queues: WorkQueue) -> AsyncIterator[None]:
    """Runs the queues until the block ends."""
    tasks = [asyncio.create_task(queue.run(WORKERS)) for queue in queues]
    try:
        async with asyncio.timeout(SECONDS):
            yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Congestion:
    """Pauses for an hour after each reconcile."""
    monkeypatch.setattr(congestion, "LONGEST", 3600.0)
    return Congestion(Window(1e-12))


class Measured:
    """Reconciles that take 5 ms, with begin and end of each."""

    def __init__(self) -> None:
        self.turns: list[tuple[float, float]] = []
        self.done = asyncio.Event()

    async def reconcile(self, key: Key) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await asyncio.sleep(0.005)
        self.turns.append((begun, loop.time()))
        if len(self.turns) == len(LOUD):
            self.done.set()

    async def between(self, queue: WorkQueue) -> list[tuple[float, float]]:
        """Reconcile all, and return what each took, with the seconds until the next."""
        for key in LOUD:
            queue.add(key)
        async with running(queue):
            await self.done.wait()
        return [(ended - begun, following - ended) for (begun, ended), (following, _) in pairwise(self.turns)]


async def test_namespace_pause_delays_the_next_reconcile() -> None:
    measured = Measured()
    queue = paced(Congestion(Window(LEAST)), measured.reconcile)

    for taken, waited in await measured.between(queue):
        assert waited >= min(taken * (1 / LEAST - 1), LONGEST) * 0.9


async def test_pause_of_one_namespace_delays_no_other(endless: Congestion) -> None:
    turns: asyncio.Queue[Key] = asyncio.Queue()
    queue = paced(endless, turns.put)
    for key in LOUD:
        queue.add(key)
    async with running(queue):
        first = await turns.get()
        for name in ("a", "a", "b"):
            queue.add(("quiet", name))
            assert await turns.get() == ("quiet", name)

    assert first == LOUD[0]
    assert turns.empty()


async def test_pause_does_not_delay_other_queue(endless: Congestion) -> None:
    turns: asyncio.Queue[Key] = asyncio.Queue()
    queue, other_queue = paced(endless, turns.put), paced(endless, turns.put)
    for key in LOUD:
        queue.add(key)
    async with running(queue, other_queue):
        first = await turns.get()
        other_queue.add(QUIET)
        second = await turns.get()

    assert [first, second] == [LOUD[0], QUIET]
    assert turns.empty()


async def test_pause_ends_a_wait_for_room_of_other_queue(endless: Congestion) -> None:
    """The workers of both queues wait for room when the pause begins."""
    turns: asyncio.Queue[Key] = asyncio.Queue()
    begun, go = asyncio.Event(), asyncio.Event()

    async def reconcile(key: Key) -> None:
        begun.set()
        await go.wait()
        await turns.put(key)

    queue, other_queue = paced(endless, reconcile), paced(endless, turns.put)
    for key in LOUD:
        queue.add(key)
    async with running(queue, other_queue):
        await begun.wait()
        other_queue.add(QUIET)
        await asyncio.sleep(0)
        go.set()
        assert [await turns.get(), await turns.get()] == [LOUD[0], QUIET]

    assert turns.empty()


async def test_other_queue_waits_for_one_turn_only() -> None:
    order: list[Key] = []
    begun, go, done = asyncio.Event(), asyncio.Event(), asyncio.Event()
    many = [("loud", str(number)) for number in range(2 * WORKERS)]

    async def reconcile(key: Key) -> None:
        begun.set()
        await go.wait()
        order.append(key)
        if len(order) == len(many) + 1:
            done.set()

    window_of_one = Congestion()
    queue, other_queue = paced(window_of_one, reconcile), paced(window_of_one, reconcile)
    for key in many:
        queue.add(key)
    async with running(queue, other_queue):
        await begun.wait()
        await asyncio.sleep(0)
        other_queue.add(QUIET)
        go.set()
        await done.wait()

    assert order.index(QUIET) <= 2


@pytest.mark.parametrize("pauses", [(0.2, 0.01), (0.01, 0.2)], ids=["longer first", "shorter first"])
async def test_longer_of_two_overlapping_pauses_counts(pauses: tuple[float, float]) -> None:
    loop, left = asyncio.get_running_loop(), list(pauses)
    ends: list[float] = []
    both, third = asyncio.Barrier(2), asyncio.Event()

    async def reconcile(key: Key) -> None:
        if key == LOUD[2]:
            third.set()
        else:
            await both.wait()

    def pause_for(taken: float) -> float:
        seconds = left.pop(0)
        ends.append(loop.time() + seconds)
        return seconds

    queue = WorkQueue("t", reconcile, room=Congestion(Window(2.0)).room, pause=pause_for)
    for key in LOUD:
        queue.add(key)
    async with running(queue):
        await third.wait()
        begun = loop.time()

    assert len(ends) == 2
    assert begun >= max(ends) - 0.005


async def test_changes_of_a_single_object_do_not_pause(endless: Congestion) -> None:
    turns: asyncio.Queue[Key] = asyncio.Queue()
    again = [QUIET] * 3

    async def reconcile(key: Key) -> None:
        await turns.put(key)
        if again:
            queue.add(again.pop())

    queue = paced(endless, reconcile)
    queue.add(QUIET)
    async with running(queue):
        keys = [await turns.get() for _ in range(4)]

    assert keys == [QUIET] * 4


async def test_queue_of_a_process_pauses_on_a_busy_server() -> None:
    measured = Measured()
    async with wire(lambda asked: refusal(503, "ServiceUnavailable")) as api:
        process = Process("t", options.parser("t", "").parse_args([]), api.client)
        for _ in range(3):
            with pytest.raises(ApiError):
                await process.client.create(CONFIG_MAPS, {"metadata": {"namespace": "n"}}, manager="t")
        queue = process.queue("t", measured.reconcile, of=Store())

        for taken, waited in await measured.between(queue):
            assert waited >= min(taken * (1 / LEAST - 1), LONGEST) * 0.9
