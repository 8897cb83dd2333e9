"""During an outage of the API server, the process stays up and reports no lost heartbeat. It continues at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.transport import DEADLINE
from kubefoundry_sdk._runtime import lease, options
from kubefoundry_sdk._runtime.backoff import OUTAGE_DELAY
from kubefoundry_sdk._runtime.outage_clock import OutageClock
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk._runtime.store import Key
from kubefoundry_sdk._runtime.workqueue import WorkQueue
from support.simulated_time import SimulatedTime
from support.wire import Asked, Wire, events, ok, refusal, wire

MODEL: dict[str, Any] = {
    "apiVersion": "kubefoundry.ai/v1alpha1",
    "kind": "ModelDeployment",
    "metadata": {"name": "m", "namespace": "n", "resourceVersion": "5"},
}
PROMISED, PROMISED_IF_LOST = 20.0, 50.0
"""Seconds after an outage within which failed writes are repeated (contract §4)."""
SOON = 5.0
"""Seconds after the server's return within which we are at work again."""


class Server:
    """One ModelDeployment and one Lease; away while `away` says with which answer, or `is_lost`."""

    def __init__(self) -> None:
        self.away: int | None = None
        self.is_lost = False
        self.lease: dict[str, Any] | None = None
        self.writes = 0

    def answer(self, asked: Asked) -> web.Response | Awaitable[web.Response]:
        if self.is_lost:
            return lost()
        if self.away == 502:
            return web.Response(text="<html>", status=502)
        if self.away:
            return refusal(self.away, "Away")
        if "leases" in asked.path:
            if asked.method == "GET":
                return ok(self.lease) if self.lease else refusal(404, "NotFound")
            self.writes += 1
            meta = {**asked.body["metadata"], "resourceVersion": str(self.writes)}
            self.lease = {**asked.body, "metadata": meta}
            return ok(self.lease)
        if "watch" in asked.query:
            return events(("BOOKMARK", {"metadata": {"resourceVersion": "5"}}))
        if asked.path.endswith("/modeldeployments"):
            return ok({"metadata": {"resourceVersion": "5"}, "items": [MODEL]})
        return ok(MODEL)


async def lost() -> web.Response:
    """Never answer, not even once the API server is back: the packets of this request were dropped."""
    answered: asyncio.Future[web.Response] = asyncio.get_running_loop().create_future()
    return await answered


@pytest.mark.slow
@pytest.mark.parametrize(("minutes", "away"), [(1, 502), (10, 502), (10, 503), (10, 403), (40, 502)])
def test_it_goes_on_at_once_however_long_it_lasted(
    minutes: int, away: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asyncio.Runner(loop_factory=SimulatedTime) as runner:
        monkeypatch.setattr(lease, "now", runner.get_loop().time)
        runner.run(outage(60.0 * minutes, away))


@pytest.mark.parametrize(("minutes", "away"), [(1, 502), (1, 503), (10, 503), (40, 504)])
def test_failed_writes_resume_within_seconds_of_an_outage(minutes: int, away: int) -> None:
    with asyncio.Runner(loop_factory=SimulatedTime) as runner:
        waited = runner.run(seconds_until_written(60.0 * minutes, away))

    assert waited <= 1.2 * OUTAGE_DELAY <= PROMISED


@pytest.mark.parametrize("seconds", [1.0, 31.0, 59.0, 601.0, 2400.0])
def test_lost_writes_resume_within_50_s_of_an_outage(seconds: float) -> None:
    """A request without an answer ends after its deadline, which may have begun just before the end of the outage."""
    with asyncio.Runner(loop_factory=SimulatedTime) as runner:
        waited = runner.run(seconds_until_written(seconds, None))

    assert waited <= DEADLINE + 1.2 * OUTAGE_DELAY <= PROMISED_IF_LOST


async def seconds_until_written(seconds: float, away: int | None) -> float:
    """Return how long after an outage a process that needs no Lease makes the write that failed in the outage.

    `away` is the code that answers meanwhile; None if packets are dropped.
    """
    server, clock, stop = Server(), asyncio.get_running_loop().time, asyncio.Event()
    done: asyncio.Queue[float] = asyncio.Queue()
    async with wire(server.answer) as api:
        process, queue = began(api, done, elects=False)
        running = asyncio.create_task(process.run(stop))
        await done.get()
        server.away, server.is_lost = away, away is None
        queue.add(("n", "m"))
        await asyncio.sleep(seconds)
        assert done.empty()
        server.away, server.is_lost, back = None, False, clock()
        waited = await done.get() - back
        stop.set()
        await running
    return waited


async def outage(seconds: float, away: int) -> None:
    server, clock, stop = Server(), asyncio.get_running_loop().time, asyncio.Event()
    done: asyncio.Queue[float] = asyncio.Queue()
    async with wire(server.answer) as api:
        process, queue = began(api, done)
        running = asyncio.create_task(process.run(stop))
        await done.get()

        server.away, seen, asked = away, process.outage_clock.now(), len(api.asked)
        queue.add(("n", "m"))
        for _ in range(round(seconds / 10)):
            await asyncio.sleep(10)
            assert process._healthy() is None
        assert not running.done() and not process.leading.is_set() and done.empty()
        assert process.outage_clock.now() - seen < SOON
        assert len(api.asked) - asked < 3 * seconds

        server.away, back = None, clock()
        assert await done.get() - back < SOON
        assert process.leading.is_set()
        stop.set()
        await running


def began(api: Wire, done: asyncio.Queue[float], *, elects: bool = True) -> tuple[Process, WorkQueue]:
    """A process that writes each ModelDeployment once, and says when it has."""
    chosen = options.parser("t", "").parse_args(
        ["--health-port=0", "--metrics-port=0", *(["--leader-elect"] if elects else [])]
    )
    process = Process("t", chosen, api.client)

    async def reconcile(key: Key) -> None:
        await process.client.apply(MODEL_DEPLOYMENTS, MODEL, manager="t")
        done.put_nowait(asyncio.get_running_loop().time())

    deployments = process.watch(MODEL_DEPLOYMENTS)
    queue = process.queue("t", reconcile, of=deployments)
    deployments.subscribe(lambda key, obj: queue.add(key))
    return process, queue


def test_outage_clock_stops_while_nothing_is_seen() -> None:
    now = 0.0
    outage_clock = OutageClock(lambda: now)
    read = []
    steps: list[tuple[Callable[[str], None], str]] = [
        (outage_clock.ends, "nobody"),
        (outage_clock.fails, "a"),
        (outage_clock.sees, "a"),
        (outage_clock.sees, "b"),
        (outage_clock.fails, "a"),
        (outage_clock.ends, "b"),
        (outage_clock.sees, "b"),
    ]
    for happens, watch in steps:
        happens(watch)
        now += 10.0
        read.append(outage_clock.now())

    # Not there yet; failed; seen; of two that see; of which one fails; nobody else is left; seen again.
    assert read == [10, 10, 20, 30, 40, 40, 50]
