"""The work queue: one turn at a time for a key, none lost, failures back off alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from prometheus_client import REGISTRY

from kubefoundry_sdk._cluster.errors import ApiError, ForeignAnswer, Unreachable
from kubefoundry_sdk._runtime import backoff, workqueue
from kubefoundry_sdk._runtime.backoff import Backoff
from kubefoundry_sdk._runtime.store import Key
from kubefoundry_sdk._runtime.workqueue import LASTING, WorkQueue
from support.waiting import SECONDS

A: Key = ("n", "a")
B: Key = ("n", "b")


async def working(queue: WorkQueue, until: Awaitable[object], workers: int = 2) -> None:
    """Runs the queue until something has happened."""
    task = asyncio.create_task(queue.run(workers))
    try:
        async with asyncio.timeout(SECONDS):
            await until
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_changes_while_a_key_waits_make_one_turn() -> None:
    turns: list[Key] = []
    done = asyncio.Event()

    async def reconcile(key: Key) -> None:
        turns.append(key)
        if key == B:
            done.set()

    queue = WorkQueue("t", reconcile)
    for key in (A, A, A, B):
        queue.add(key)
    await working(queue, done.wait(), workers=1)

    assert turns == [A, B]


async def test_change_during_a_turn_queues_one_more_turn() -> None:
    inside = 0
    most = 0
    turns = 0
    done = asyncio.Event()

    async def reconcile(key: Key) -> None:
        nonlocal inside, most, turns
        inside += 1
        most = max(most, inside)
        turns += 1
        if turns == 1:
            queue.add(A)
            queue.add(A)
        await asyncio.sleep(0)
        inside -= 1
        if turns == 2:
            done.set()

    queue = WorkQueue("t", reconcile)
    queue.add(A)
    await working(queue, done.wait(), workers=4)

    assert (turns, most) == (2, 1)


@pytest.mark.parametrize(
    ("failure", "least", "most"),
    [
        (ApiError(500, "InternalError", "boom"), 0.15, 0.25),
        (Unreachable("no answer"), 0.15, 0.25),
        (RuntimeError("our fault"), 0.15, 0.25),
        (ApiError(429, "TooManyRequests", "later", retry_after=3.0), 3.0, 3.6),
        (ForeignAnswer("a page", 503, retry_after=3.0), 3.0, 3.6),
    ],
    ids=["server error", "unreachable", "our fault", "retry after", "foreign retry after"],
)
async def test_queue_retries_failure_later(
    failure: Exception, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: asyncio.Queue[float] = asyncio.Queue()
    queue = WorkQueue("t", _raising(failure))
    monkeypatch.setattr(queue, "add_after", lambda key, delay: waits.put_nowait(delay))
    queue.add(A)
    waited = asyncio.ensure_future(waits.get())
    await working(queue, waited)

    assert least <= waited.result() <= most


async def test_backoff_doubles_per_key_until_success(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workqueue, "HOLD", 0.0)
    monkeypatch.setattr("random.uniform", lambda a, b: 1.0)
    waits: list[float] = []
    done = asyncio.Event()
    answers: list[Exception | None] = [
        Unreachable(""),
        Unreachable(""),
        Unreachable(""),
        None,
        Unreachable(""),
    ]

    async def reconcile(key: Key) -> None:
        if answer := answers.pop(0):
            raise answer
        queue.add(A)

    queue = WorkQueue("t", reconcile)

    def at_once(key: Key, delay: float) -> None:
        waits.append(delay)
        if answers:
            queue.add(key)
        else:
            done.set()

    monkeypatch.setattr(queue, "add_after", at_once)
    queue.add(A)
    await working(queue, done.wait())

    assert waits == [0.2, 0.4, 0.8, 0.2]


async def test_queue_retries_conflict(caplog: pytest.LogCaptureFixture) -> None:
    """The object's own watch event may come first, and a conflict of something else (a quota) brings none."""
    waits: list[float] = []
    turns: list[Key] = []
    done = asyncio.Event()

    async def reconcile(key: Key) -> None:
        turns.append(key)
        if key == B:
            done.set()
        if key == A:
            raise ApiError(409, "Conflict", "the object has been modified")

    queue = WorkQueue("t", reconcile)
    queue.add_after = lambda key, delay: waits.append(delay)  # type: ignore[method-assign]
    queue.add(A)
    queue.add(B)
    await working(queue, done.wait(), workers=1)

    assert turns == [A, B]
    assert [0.15 <= wait <= 0.25 for wait in waits] == [True]
    assert caplog.text == "", "one conflict is nothing to speak of"


async def test_queue_survives_a_thousand_failures_with_bounded_delay(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(workqueue, "HOLD", 0.0)
    waits: list[float] = []
    done = asyncio.Event()
    queue = WorkQueue("t", _raising(ApiError(422, "Invalid", "no")))

    def at_once(key: Key, delay: float) -> None:
        waits.append(delay)
        if len(waits) < 1100:
            queue.add(key)
        else:
            done.set()

    monkeypatch.setattr(queue, "add_after", at_once)
    queue.add(A)
    await working(queue, done.wait(), workers=1)

    assert waits[8] < 0.8 * backoff.OBJECT.last <= waits[11]
    assert max(waits) <= 1.2 * backoff.OBJECT.last
    assert "internal error" not in caplog.text


async def test_queue_worker_survives_error_in_the_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    done = asyncio.Event()

    async def reconcile(key: Key) -> None:
        if key == A:
            raise Unreachable("no answer")
        done.set()

    def fails(*_: object) -> None:
        raise OverflowError("too large")

    queue = WorkQueue("t", reconcile)
    monkeypatch.setattr(queue, "_retry", fails)
    queue.add(A)
    queue.add(B)
    await working(queue, done.wait(), workers=1)

    assert done.is_set()


async def test_interrupted_key_is_reconciled_by_the_next_run() -> None:
    turns: list[Key] = []
    begun, done = asyncio.Event(), asyncio.Event()

    async def reconcile(key: Key) -> None:
        turns.append(key)
        begun.set()
        if len(turns) == 1:
            await asyncio.Event().wait()
        if key == B:
            done.set()

    queue = WorkQueue("t", reconcile)
    queue.add(A)
    queue.add(B)
    await working(queue, begun.wait(), workers=1)
    await working(queue, done.wait(), workers=1)

    assert turns == [A, B, A] or turns == [A, A, B]


async def test_queue_keeps_the_earlier_of_two_requeues() -> None:
    done = asyncio.Event()

    async def reconcile(key: Key) -> None:
        done.set()

    queue = WorkQueue("t", reconcile)
    queue.add_after(A, 0.05)
    queue.add_after(A, 30)
    await working(queue, done.wait())

    assert done.is_set()


def _raising(failure: Exception) -> Callable[[Key], Awaitable[None]]:
    async def reconcile(key: Key) -> None:
        raise failure

    return reconcile


@pytest.mark.parametrize(
    ("failure", "reported"),
    [
        pytest.param(ApiError(422, "Invalid", "no"), 2, id="a refusal"),
        pytest.param(ApiError(413, "RequestEntityTooLarge", "no"), 2, id="too large"),
        pytest.param(ApiError(503, "ServiceUnavailable", "later"), 0, id="may pass"),
        pytest.param(ApiError(409, "Conflict", "again"), 0, id="a conflict"),
        pytest.param(Unreachable("nobody"), 0, id="no answer"),
        pytest.param(KeyError("spec"), 3, id="an internal error, from the first on"),
    ],
)
async def test_queue_reports_rejection_from_the_second_in_a_row(
    failure: Exception, reported: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "OBJECT", Backoff(0.0, 300.0))
    turns, heard = 0, []
    done = asyncio.Event()

    async def reconcile(key: Key) -> None:
        nonlocal turns
        turns += 1
        if turns == 4:
            done.set()
            return
        raise failure

    queue = WorkQueue("t", reconcile, failed=lambda key, error: heard.append((key, error)))
    queue.add(A)
    await working(queue, done.wait())

    assert heard == [(A, failure)] * reported


DENIED = 'admission webhook "w.example.com" denied the request: a team "t" was not found'
CALLED = 'Internal error occurred: failed calling webhook "w.example.com": connection refused'


@pytest.mark.parametrize(
    ("failure", "reported"),
    [
        pytest.param(ApiError(404, "NotFound", DENIED), 3, id="denied"),
        pytest.param(ApiError(409, "Conflict", DENIED), 3, id="denied as a conflict"),
        pytest.param(ApiError(500, "InternalError", CALLED), 3, id="webhook is down"),
        pytest.param(ApiError(409, "Conflict", "again"), 0, id="a conflict"),
        pytest.param(ApiError(429, "TooManyRequests", "later"), 0, id="busy server"),
        pytest.param(ApiError(503, "ServiceUnavailable", "later"), 0, id="no server"),
    ],
)
async def test_failure_of_a_webhook_is_reported_once_it_lasts(
    failure: ApiError, reported: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "OBJECT", Backoff(0.0, 300.0))
    turns, heard = 0, []
    done = asyncio.Event()

    async def reconcile(key: Key) -> None:
        nonlocal turns
        turns += 1
        if turns == LASTING + 3:
            done.set()
            return
        raise failure

    queue = WorkQueue("t", reconcile, failed=lambda key, error: heard.append(error))
    queue.add(A)
    await working(queue, done.wait())

    assert heard == [failure] * reported


async def test_repeated_retry_after_of_a_second_backs_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workqueue, "HOLD", 0.0)
    waits: list[float] = []
    done = asyncio.Event()
    queue = WorkQueue("t", _raising(ApiError(429, "TooManyRequests", "later", retry_after=0.01)))

    def soon(key: Key, delay: float) -> None:
        waits.append(delay)
        if len(waits) == 24:
            done.set()
        asyncio.get_running_loop().call_later(0.02, queue.add, key)

    monkeypatch.setattr(queue, "add_after", soon)
    queue.add(A)
    await working(queue, done.wait())

    assert max(waits) >= backoff.FAULT_DELAY * 0.8


async def test_events_do_not_repeat_a_failure_at_once() -> None:
    turns = 0
    done = asyncio.Event()

    async def reconcile(key: Key) -> None:
        nonlocal turns
        if key == B:
            done.set()
            return
        turns += 1
        raise ApiError(403, "Forbidden", "no")

    queue = WorkQueue("t", reconcile)
    for _ in range(50):
        queue.add(A)
        queue.add(B)
        await working(queue, done.wait(), workers=1)
        done.clear()

    assert turns <= 10


async def test_queue_honours_retry_after_despite_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    turns: list[Key] = []
    done = asyncio.Event()

    async def reconcile(key: Key) -> None:
        turns.append(key)
        if key == B:
            done.set()
        else:
            raise ApiError(429, "TooManyRequests", "later", retry_after=30.0)

    queue = WorkQueue("t", reconcile)
    monkeypatch.setattr(queue, "add_after", lambda key, delay: waits.append(delay))
    queue.add(A)
    queue.add(B)
    await working(queue, done.wait(), workers=1)
    queue.add(A)

    assert turns == [A, B]
    assert 30.0 <= waits[0] <= 36.0
    assert 29 < waits[1] <= 30


async def test_pending_counts_what_waits_and_what_is_being_reconciled() -> None:
    seen: list[float | None] = []
    done = asyncio.Event()

    async def reconcile(key: Key) -> float | None:
        seen.append(pending())
        if len(seen) == 3:
            done.set()
        return None

    def pending() -> float | None:
        return REGISTRY.get_sample_value("kubefoundry_reconciliations_pending", {"provider": "pending"})

    queue = WorkQueue("pending", reconcile)
    for key in (A, B, A, ("n", "c")):
        queue.add(key)
    await working(queue, done.wait(), workers=1)

    assert seen == [3, 2, 1]
    assert pending() == 0
