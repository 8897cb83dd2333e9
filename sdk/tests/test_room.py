"""What one namespace's objects may take of a process's memory."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._runtime.memory_quota import OVERHEAD, MemoryQuota
from kubefoundry_sdk._runtime.store import Store, size_of

TOTAL = 300_000
"""Bytes: one namespace alone may take a third."""


def large(name: str, version: int, size: int, namespace: str = "loud", **more: Any) -> dict[str, Any]:
    """An object of about that many bytes when deflated."""
    content = random.Random(f"{name}/{version}").randbytes(size).hex() if size else ""
    meta = {"name": name, "namespace": namespace, "resourceVersion": str(version)}
    return {"metadata": meta, "content": content, **more}


def names(store: Store) -> set[str]:
    return {obj["metadata"]["name"] for obj in store.objects()}


def test_namespace_over_its_share_blocks_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Store(room=MemoryQuota(TOTAL))
    refused: list[dict[str, Any]] = []
    store.left_out = refused.append

    for number in range(50):
        store.put(large(f"l-{number}", number + 1, 10_000))
    store.put(large("quiet", 100, 10_000, namespace="quiet"))

    assert 7 <= len(store) - 1 <= 10
    assert "quiet" in names(store)
    assert store.incomplete
    # Once, not for each of them.
    assert [obj["metadata"]["name"] for obj in refused] == [f"l-{len(store) - 1}"]
    assert caplog.text.count("delete some") == 1


def test_deleted_or_smaller_object_frees_memory() -> None:
    store = Store(room=MemoryQuota(TOTAL))
    free = store.room.left("loud")

    store.put(large("a", 1, 50_000))
    store.put(large("a", 2, 10))
    store.put(large("b", 3, 50_000))
    store.remove(large("b", 4, 0))
    store.remove(large("a", 5, 0))

    assert store.room.left("loud") == free


def test_object_that_outgrows_the_quota_stays_as_it_was() -> None:
    store = Store(room=MemoryQuota(TOTAL))
    store.put(large("a", 1, 10))

    store.put(large("a", 2, 200_000))

    kept = store.get(("loud", "a"))
    assert kept is not None
    assert kept["metadata"]["resourceVersion"] == "1"


def test_objects_outside_of_namespaces_are_not_up_to_tenants() -> None:
    store = Store(room=MemoryQuota(TOTAL))
    for number in range(20):
        store.put(large(f"c-{number}", number + 1, 50_000, namespace=""))
    assert len(store) == 20


def test_list_keeps_no_more_than_the_store_while_it_arrives() -> None:
    store = Store(room=MemoryQuota(TOTAL))
    store.put(large("known", 1, 10_000))

    reduced = store.arriving()
    came = [arrived for number in range(50) if (arrived := reduced(large(f"a-{number}", number + 2, 10_000)))]
    earlier = reduced(large("known", 1, 10_000))
    assert earlier is not None
    store.replace([*came, earlier], "100")

    # What was known keeps its place, however late it comes.
    assert "known" in names(store)
    assert len(came) <= 9
    assert store.incomplete
    # With the others gone, a later list is complete.
    reduced = store.arriving()
    store.replace([arrived for arrived in [reduced(large("known", 1, 10_000))] if arrived], "101")
    assert names(store) == {"known"}
    assert not store.incomplete


def test_unreadable_object_of_a_list_stays_as_it_was() -> None:
    store = Store(trim=lambda obj: {"metadata": obj["metadata"], "size": obj["spec"]["size"]})
    store.put(large("a", 1, 0, spec={"size": 1}))

    reduced = store.arriving()
    unread = reduced(large("a", 2, 0, spec=None))
    assert unread is not None
    store.replace([unread], "9")

    assert store.get(("loud", "a")) is not None


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.sampled_from((-1, 0, 2_000, 30_000, 90_000)))
    )
)
def test_whatever_comes_the_total_holds_and_is_counted_exactly(
    steps: list[tuple[str, int, int]],
) -> None:
    room = MemoryQuota(TOTAL)
    store = Store(room=room)
    for version, (namespace, number, size) in enumerate(steps, start=1):
        obj = large(str(number), version, max(size, 0), namespace=namespace)
        store.remove(obj) if size < 0 else store.put(obj)

        taken = sum(room.taken(namespace) for namespace in "abc")
        assert taken == sum(size_of(obj) for obj in store.objects())
        assert taken <= TOTAL
        assert all(room.left(namespace) > OVERHEAD for namespace in "xyz")
