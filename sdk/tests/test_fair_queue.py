"""Namespaces take turns, and within one the order of arrival holds."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._runtime.fair_queue import FairLimit, FairQueue
from support.waiting import SECONDS

NAMESPACES = ("", "a", "b", "c")
STEPS = st.lists(st.sampled_from(("next", "drop", *NAMESPACES)), max_size=60)
"""What is done to a queue; a namespace adds an item of its own."""


@given(STEPS)
def test_waiting_namespaces_take_turns(steps: list[str]) -> None:
    queue: FairQueue[tuple[str, int]] = FairQueue()
    waiting: dict[str, list[tuple[str, int]]] = defaultdict(list)
    passed: dict[str, list[str]] = defaultdict(list)
    """Namespaces that had a turn while this one waited."""
    for number, step in enumerate([*steps, *["next"] * len(steps)]):
        if step in NAMESPACES:
            waiting[step].append((step, number))
            queue.append(step, (step, number))
        elif not any(waiting.values()):
            with pytest.raises(IndexError):
                queue.popleft() if step == "next" else queue.drop()
        elif step == "drop":
            namespace, _ = item = queue.drop()
            assert len(waiting[namespace]) == max(map(len, waiting.values()))
            assert item == waiting[namespace].pop()
        else:
            namespace, _ = item = queue.popleft()
            assert item == waiting[namespace].pop(0)
            passed[namespace] = []
            for other in NAMESPACES:
                if other != namespace and waiting[other]:
                    passed[other].append(namespace)
                    assert len(passed[other]) == len(set(passed[other]))
        for namespace in NAMESPACES:
            if not waiting[namespace]:
                passed[namespace] = []
        assert len(queue) == sum(map(len, waiting.values()))
    assert not any(waiting.values())


@given(
    st.lists(st.sampled_from(NAMESPACES), max_size=20),
    st.lists(st.frozensets(st.sampled_from(NAMESPACES)), max_size=20),
)
def test_skipped_namespaces_keep_items_and_places(added: list[str], skips: list[frozenset[str]]) -> None:
    queue: FairQueue[tuple[str, int]] = FairQueue()
    waiting: dict[str, list[tuple[str, int]]] = {}
    """Items by namespace, in the order of the turns."""
    for number, namespace in enumerate(added):
        queue.append(namespace, (namespace, number))
        waiting.setdefault(namespace, []).append((namespace, number))

    for skip in (*skips, *[frozenset[str]()] * len(added)):
        turns = [namespace for namespace in waiting if namespace not in skip]
        assert queue.next_namespace(skip) == (turns[0] if turns else None)
        assert [name for name in NAMESPACES if queue.has_items(name)] == [
            name for name in NAMESPACES if name in waiting
        ]
        if not turns:
            with pytest.raises(IndexError):
                queue.popleft(skip)
            continue
        items = waiting.pop(turns[0])
        assert queue.popleft(skip) == items.pop(0)
        if items:
            waiting[turns[0]] = items
        assert len(queue) == sum(map(len, waiting.values()))
    assert not waiting


@given(st.lists(st.tuples(st.sampled_from(NAMESPACES), st.sampled_from(["ends", "cancelled"])), max_size=24))
def test_fair_limit_admits_at_most_its_size(calls: list[tuple[str, str]]) -> None:
    async def run() -> None:
        limit, inside, most = FairLimit(2), 0, 0

        async def work(namespace: str) -> None:
            nonlocal inside, most
            async with limit.turn(namespace):
                inside += 1
                most = max(most, inside)
                try:
                    await asyncio.sleep(0)
                finally:
                    inside -= 1

        tasks = [asyncio.create_task(work(namespace)) for namespace, _ in calls]
        for task, (_, end) in zip(tasks, calls, strict=True):
            await asyncio.sleep(0)
            if end == "cancelled":
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert most <= 2
        async with limit.turn("x"), limit.turn("y"):
            pass

    asyncio.run(asyncio.wait_for(run(), SECONDS))


async def test_many_of_one_namespace_hold_up_another_for_one_turn_only() -> None:
    limit, order = FairLimit(1), []

    async def work(namespace: str) -> None:
        async with limit.turn(namespace):
            order.append(namespace)
            await asyncio.sleep(0)

    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
        for namespace in (*["crowd"] * 50, "alone"):
            group.create_task(work(namespace))

    assert order.index("alone") <= 2
