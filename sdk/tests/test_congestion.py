"""The window of turns that write: it grows while the server is quick, and halves when it is not."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._api.kinds import CONFIG_MAPS
from kubefoundry_sdk._cluster import congestion
from kubefoundry_sdk._cluster.client import behind
from kubefoundry_sdk._cluster.congestion import (
    CROWDED,
    LEAST,
    LONGEST,
    PERIOD,
    SLOW,
    Congestion,
    Floor,
    Window,
    answered,
    pause,
    refused,
    route,
)
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._runtime.store import Key
from kubefoundry_sdk._runtime.workqueue import WorkQueue
from support.waiting import SECONDS
from support.wire import Asked, ok, refusal, wire

QUICK = 0.004
OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}}


def steady(cores: int, rounds: int) -> Window:
    """The window after so many round trips with a server that works on `cores` writes at a time."""
    window, now = Window(), 0.0
    for _ in range(rounds):
        at_once = int(window.size)
        sent, now = now, now + QUICK * max(1.0, at_once / cores)
        for _ in range(at_once):
            window = answered(window, sent=sent, now=now, floor=QUICK, full=True)
    return window


@pytest.mark.parametrize("cores", [1, 2, 4, 16])
def test_window_settles_between_busy_and_queueing(cores: int) -> None:
    sizes = [steady(cores, rounds).size for rounds in range(200, 240)]

    assert min(sizes) >= cores * SLOW * congestion.CUT - 1
    assert max(sizes) <= cores * SLOW + 1


def test_window_keeps_its_size_when_no_write_waits() -> None:
    window = Window(3.0)

    assert answered(window, sent=1.0, now=1.0 + QUICK, floor=QUICK, full=False) == window


def test_answers_to_what_was_sent_before_a_cut_cut_no_further() -> None:
    cut = answered(Window(8.0), sent=0.0, now=1.0, floor=QUICK, full=True)

    assert cut.size == 4.0
    assert answered(cut, sent=0.5, now=1.5, floor=QUICK, full=True) == cut
    assert refused(cut, sent=0.9, now=1.6) == cut
    assert refused(cut, sent=1.1, now=1.7).size == 2.0


@given(st.lists(st.tuples(st.floats(0.001, 60.0), st.booleans(), st.booleans()), max_size=200))
def test_window_always_admits_one_write(answers: list[tuple[float, bool, bool]]) -> None:
    window, now = Window(), 0.0
    for took, full, lost in answers:
        sent, now = now, now + took
        window = (
            refused(window, sent=sent, now=now)
            if lost
            else answered(window, sent=sent, now=now, floor=QUICK, full=full)
        )

        assert window.size >= LEAST
        assert 0 <= pause(window, took) <= LONGEST


@pytest.mark.parametrize(
    ("times", "full", "smallest"),
    [
        (CROWDED * 0.9, True, 1.0),
        (CROWDED * 1.1, True, LEAST),
        (20.0, True, LEAST),
        (CROWDED * 0.9, False, 1.0),
        (20.0, False, 1.0),
    ],
)
def test_single_request_pauses_only_on_a_busy_server(times: float, full: bool, smallest: float) -> None:
    window, now = Window(), 0.0
    sizes = []
    for _ in range(20):
        sent, now = now, now + times * QUICK
        window = answered(window, sent=sent, now=now, floor=QUICK, full=full)
        sizes.append(window.size)
    assert min(sizes) == smallest

    for _ in range(3):
        sent, now = now, now + QUICK
        window = answered(window, sent=sent, now=now, floor=QUICK, full=False)
    assert window.size >= 1.0


@pytest.mark.parametrize("size", [1.1, 1.9, 8.0])
def test_fair_share_of_a_busy_server_leaves_one_in_flight(size: float) -> None:
    window, now = Window(size), 0.0
    for _ in range(20):
        sent, now = now, now + CROWDED * 0.9 * QUICK
        window = answered(window, sent=sent, now=now, floor=QUICK, full=False)

    assert window.size == 1.0


@pytest.mark.parametrize(
    ("size", "taken", "seconds"), [(8.0, 0.1, 0.0), (1.0, 0.1, 0.0), (0.5, 0.1, 0.1), (LEAST, 0.9, LONGEST)]
)
def test_congestion_pause_leaves_others_their_share(size: float, taken: float, seconds: float) -> None:
    assert pause(Window(size), taken) == pytest.approx(seconds)


async def test_window_stays_small_while_a_namespace_pauses() -> None:
    paused = Congestion(Window(LEAST))
    with paused.write("PATCH", "/api/v1/namespaces/n/configmaps/c"):
        pass
    paused.window = Window(LEAST)
    assert paused.pause_after(0.5) == LONGEST

    with paused.write("PATCH", "/api/v1/namespaces/n/configmaps/c"):
        await asyncio.sleep(0.01)

    assert paused.window.size == LEAST


async def test_reconcile_that_waits_for_something_else_causes_no_pause() -> None:
    assert Congestion(Window(LEAST)).pause_after(LONGEST * 1.1) == 0.0


async def test_event_write_waits_for_the_end_of_a_pause() -> None:
    loop, paused = asyncio.get_running_loop(), Congestion(Window(0.5))
    start = loop.time()
    seconds = paused.pause_after(0.02)

    async with asyncio.timeout(SECONDS):
        await paused.give_way()

    assert seconds <= loop.time() - start + 0.005
    assert loop.time() - start < LONGEST


def test_latency_floor_is_forgotten_if_not_reached_for_long() -> None:
    floor = Floor()
    floor.add(0.004, 0.0)

    assert floor.add(0.030, 1.0) == 0.004
    assert floor.add(0.030, PERIOD + 1) == 0.004
    assert floor.add(0.030, 2 * PERIOD + 2) == 0.030


async def test_window_bounds_turns_and_a_stop_loses_none() -> None:
    """Stopped while workers wait for room, which is when a leader loses its Lease in a burst."""
    congestion = Congestion(Window(2.0))
    inside, most = 0, 0
    seen: set[Key] = set()
    go = asyncio.Event()
    both, all_done = asyncio.Event(), asyncio.Event()

    async def reconcile(key: Key) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        try:
            if inside == 2:
                both.set()
            await go.wait()
            seen.add(key)
            if len(seen) == 6:
                all_done.set()
        finally:
            inside -= 1

    queue = WorkQueue("t", reconcile, room=congestion.room)
    keys = {("n", str(index)) for index in range(6)}
    for key in sorted(keys):
        queue.add(key)
    async with asyncio.timeout(SECONDS):
        first = asyncio.create_task(queue.run(5))
        await both.wait()
        first.cancel()
        await asyncio.wait([first])
        go.set()
        second = asyncio.create_task(queue.run(5))
        await all_done.wait()
        second.cancel()
        await asyncio.wait([second])

    assert most == 2
    assert seen == keys


async def test_slow_reconcile_blocks_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An upstream's webhook that does not answer takes half a minute."""
    monkeypatch.setattr(congestion, "LONGEST", 0.05)
    other = asyncio.Event()

    async def reconcile(key: Key) -> None:
        if key == ("n", "stuck"):
            await asyncio.Event().wait()
        other.set()

    queue = WorkQueue("t", reconcile, room=Congestion().room)
    queue.add(("n", "stuck"))
    queue.add(("n", "other"))
    running = asyncio.create_task(queue.run(4))
    async with asyncio.timeout(SECONDS):
        await other.wait()
    running.cancel()
    await asyncio.wait([running])


async def test_event_write_follows_waiting_writes() -> None:
    congestion = Congestion()
    order: list[str] = []
    inside, go = asyncio.Event(), asyncio.Event()

    async def turn(name: str) -> None:
        async with congestion.room():
            inside.set()
            await go.wait()
            order.append(name)

    async def last() -> None:
        await congestion.give_way()
        order.append("event")

    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
        group.create_task(turn("first"))
        await inside.wait()
        group.create_task(turn("second"))
        await asyncio.sleep(0)
        group.create_task(last())
        await asyncio.sleep(0)
        go.set()

    assert order.index("event") >= order.index("first")
    assert set(order) == {"first", "second", "event"}


@pytest.mark.parametrize(
    ("code", "shrinks"), [(200, False), (409, False), (422, False), (429, True), (503, True), (504, True)]
)
async def test_window_shrinks_when_the_server_is_overloaded(code: int, shrinks: bool) -> None:
    def answer(asked: Asked) -> web.Response:
        return ok(OBJECT) if code == 200 else refusal(code, "Word")

    learns = Congestion(Window(8.0))
    async with wire(answer) as api:
        client = behind(api.client, lambda: None, learns)
        with suppress(ApiError):
            await client.apply(CONFIG_MAPS, OBJECT, manager="t")

    assert (learns.window.size < 8.0) == shrinks


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "/apis/kubefoundry.ai/v1alpha1/namespaces/n/modeldeployments/m/status",
            "PATCH/modeldeployments/status",
        ),
        ("/apis/kubefoundry.ai/v1alpha1/namespaces/n/modeldeployments/m", "PATCH/modeldeployments"),
        (
            "/apis/kubefoundry.ai/v1alpha1/inferenceproviderconfigs/kaito/status",
            "PATCH/inferenceproviderconfigs/status",
        ),
        ("/api/v1/namespaces/n/configmaps/c", "PATCH/configmaps"),
        ("/api/v1/namespaces/n/configmaps", "PATCH/configmaps"),
        ("/api/v1/namespaces/n", "PATCH/namespaces"),
    ],
)
def test_writes_of_one_kind_are_measured_against_each_other(url: str, expected: str) -> None:
    assert route("PATCH", url) == expected
