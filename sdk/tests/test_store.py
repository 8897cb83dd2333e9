"""The store: newest version wins, deletions in gaps are reported, ghosts do not come back."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._runtime.store import Key, Store


def obj(name: str, version: int, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "n", "resourceVersion": str(version)}, **more}


def named(store: Store) -> list[str]:
    return sorted(item["metadata"]["name"] for item in store.objects())


@pytest.fixture
def received() -> list[tuple[Key, Any]]:
    return []


@pytest.fixture
def store(received: list[tuple[Key, Any]]) -> Store:
    objects = Store(index=lambda item: item.get("owner"))
    objects.subscribe(lambda key, item: received.append((key, item and item["metadata"]["resourceVersion"])))
    return objects


def test_store_ignores_write_response_older_than_event(store: Store, received: list[Any]) -> None:
    store.put(obj("a", 5, spec="new"))
    store.put(obj("a", 4, spec="old"))
    store.put(obj("a", 5, spec="same version"))

    assert store.get(("n", "a")) == obj("a", 5, spec="new")
    assert received == [(("n", "a"), "5")]


def test_store_reports_only_changes_of_kept_fields(received: list[Any]) -> None:
    store = Store(
        index=lambda item: item["owner"], trim=lambda item: {"owner": item["owner"], "size": item["size"]}
    )
    store.subscribe(lambda key, item: received.append(item))

    store.put(obj("a", 1, owner="x", size=1, noise=1))
    store.put(obj("a", 2, owner="x", size=1, noise=2))
    store.put(obj("a", 1, owner="x", size=9))
    store.put(obj("a", 3, owner="y", size=1))

    assert received == [{"owner": "x", "size": 1}, {"owner": "y", "size": 1}]
    assert (store.indexed_keys("x", namespace="n"), store.indexed_keys("y", namespace="n")) == (
        [],
        [("n", "a")],
    )


def written(version: int, time: str, **status: Any) -> dict[str, Any]:
    """Return an object whose status core wrote at that time."""
    item = obj("a", version, status=status)
    item["metadata"]["managedFields"] = [
        {
            "manager": "core",
            "operation": "Apply",
            "subresource": "status",
            "time": time,
            "fieldsV1": {"f:status": {f"f:{name}": {} for name in status}},
        }
    ]
    return item


@pytest.mark.parametrize(("content_only", "versions"), [(True, ["1", "3"]), (False, ["1", "2", "3"])])
def test_release_of_a_field_is_reported_unless_content_only(content_only: bool, versions: list[str]) -> None:
    store = Store(content_only=content_only)
    received: list[str] = []
    store.subscribe(lambda key, item: received.append(item["metadata"]["resourceVersion"]) if item else None)
    store.put(written(1, "2026-01-01T00:00:00Z", phase="Running"))
    released = written(2, "2026-01-01T00:00:40Z", phase="Running")
    released["metadata"]["managedFields"][0]["fieldsV1"] = {}

    store.put(released)
    after = store.get(("n", "a"))
    store.put(written(3, "2026-01-01T00:01:00Z", phase="Failed"))

    assert received == versions
    assert after
    assert after["metadata"]["resourceVersion"] == "2"
    assert [item["metadata"]["resourceVersion"] for item in store.objects()] == ["3"]


def test_awaited_version_is_reported_once_by_content_only_store() -> None:
    store, received = Store(content_only=True), []
    store.put(written(1, "2026-01-01T00:00:00Z", phase="Running"))
    store.subscribe(lambda key, item: received.append(item["metadata"]["resourceVersion"]) if item else None)

    store.report_next(("n", "a"))
    for version in (2, 3):
        store.put(written(version, "2026-01-01T00:00:40Z", phase="Running"))

    assert received == ["2"]


def test_content_only_store_reports_no_listed_version() -> None:
    store, received = Store(content_only=True), []
    store.put(written(1, "2026-01-01T00:00:00Z", phase="Running"))
    store.subscribe(lambda key, item: received.append(item))
    arrived = store.arriving()(written(2, "2026-01-01T00:00:40Z", phase="Running"))
    assert arrived

    store.replace([arrived], "2")

    assert received == []
    assert [item["metadata"]["resourceVersion"] for item in store.objects()] == ["2"]


def test_what_vanished_in_a_gap_is_reported_as_deleted(store: Store, received: list[Any]) -> None:
    store.put(obj("a", 1))
    store.put(obj("b", 2))
    received.clear()

    store.replace([obj("b", 2), obj("c", 7)], "9")

    assert received == [(("n", "c"), "7"), (("n", "a"), None)]
    assert store.synced.is_set()


def test_store_keeps_object_newer_than_the_list(store: Store) -> None:
    store.put(obj("a", 12))

    store.replace([], "10")

    assert store.get(("n", "a")) is not None


def test_store_ignores_write_response_of_deleted_object(store: Store) -> None:
    store.put(obj("a", 1))
    store.remove(obj("a", 5))

    store.put(obj("a", 4))
    assert store.get(("n", "a")) is None

    store.put(obj("a", 6))
    assert store.get(("n", "a")) is not None


def test_deletion_of_an_older_uid_keeps_the_new_object(store: Store) -> None:
    store.put(obj("a", 9))

    store.remove(obj("a", 8))

    assert store.get(("n", "a")) is not None


def test_store_returns_a_copy(store: Store) -> None:
    store.put(obj("a", 1, spec={"x": 1}))

    first = store.get(("n", "a"))
    assert first is not None
    first["spec"]["x"] = 2

    assert store.get(("n", "a")) == obj("a", 1, spec={"x": 1})


def test_store_index_follows_changes_and_deletions(store: Store) -> None:
    store.put(obj("a", 1, owner="u1"))
    store.put(obj("b", 2, owner="u1"))
    store.put(obj("a", 3, owner="u2"))

    assert [item["metadata"]["name"] for item in store.indexed("u1", namespace="n")] == ["b"]
    assert [item["metadata"]["name"] for item in store.indexed("u2", namespace="n")] == ["a"]

    store.remove(obj("b", 4))
    assert store.indexed("u1", namespace="n") == []


def test_store_drops_kind_that_is_no_longer_served(store: Store, received: list[Any]) -> None:
    store.replace([obj("a", 1)], "2")
    received.clear()

    store.clear()

    assert received == [(("n", "a"), None)]
    assert not store.synced.is_set()


def test_objects_of_another_kind_version_are_stored(store: Store) -> None:
    store.replace([obj("a", 3, apiVersion="v1")], "5")

    store.clear()
    store.replace([obj("a", 3, apiVersion="v2")], "5")

    assert store.get(("n", "a")) == obj("a", 3, apiVersion="v2")


def test_older_list_still_decides_which_objects_exist(store: Store) -> None:
    store.put(obj("back", 8, spec="lost"))
    store.put(obj("gone", 7))
    store.put(obj("again", 6))
    store.remove(obj("again", 9))

    store.replace([obj("back", 3, spec="restored"), obj("again", 4)], "12")

    assert named(store) == ["again", "back"]
    assert store.get(("n", "back")) == obj("back", 3, spec="restored")


def test_list_replaces_other_content_of_the_same_version(received: list[Any]) -> None:
    store = Store()
    store.replace([obj("a", 5, spec="lost"), obj("b", 6)], "7")
    store.subscribe(lambda key, item: received.append(key))

    # From a history that went back and is longer now than the lost one.
    reduced = store.arriving()
    listed = [reduced(item) for item in (obj("a", 5, spec="restored"), obj("b", 6))]
    store.replace([item for item in listed if item], "9")

    assert store.get(("n", "a")) == obj("a", 5, spec="restored")
    assert received == [("n", "a")]


def test_store_accepts_list_with_older_versions(store: Store, received: list[Any]) -> None:
    store.replace([obj("a", 50, spec="lost"), obj("b", 60), obj("c", 20)], "70")
    store.put(obj("b", 75))
    store.remove(obj("c", 80))
    received.clear()

    store.replace([obj("a", 30, spec="restored"), obj("c", 20)], "40", rewound=True)

    assert store.get(("n", "a")) == obj("a", 30, spec="restored")
    assert received == [(("n", "a"), "30"), (("n", "c"), "20"), (("n", "b"), None)]
    store.put(obj("b", 41))
    store.put(obj("c", 42))
    assert named(store) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("listed", "after"),
    [
        pytest.param("110", ["a 105"], id="a list older than our own write has lost it"),
        pytest.param("130", ["a 105"], id="a newer one that lacks it, too"),
    ],
)
def test_store_keeps_written_object_when_list_lacks_it(listed: str, after: list[str]) -> None:
    store = Store()
    store.replace([obj("a", 100)], "100")
    store.put(obj("a", 120, spec="answered, and lost"))
    store.put(obj("ghost", 119))

    reduced = store.arriving()
    arrived = [reduced(obj("a", 105))]
    store.replace([item for item in arrived if item], listed)

    assert [
        f"{item['metadata']['name']} {item['metadata']['resourceVersion']}" for item in store.objects()
    ] == after


def test_write_during_a_list_is_newer_than_the_list(store: Store) -> None:
    store.replace([obj("a", 100)], "100")
    reduced = store.arriving()
    arrived = [reduced(obj("a", 100))]
    store.put(obj("a", 120, spec="answered"))

    store.replace([item for item in arrived if item], "110")

    assert store.get(("n", "a")) == obj("a", 120, spec="answered")


BAD: tuple[Any, ...] = (
    None,
    [],
    "text",
    {},
    {"metadata": None},
    {"metadata": []},
    {"metadata": {"name": "x"}},
    {"metadata": {"name": "x", "resourceVersion": "new"}},
    {"metadata": {"name": ["x"], "resourceVersion": "1"}},
    {"metadata": {"name": "x", "resourceVersion": "1", "managedFields": "mine"}},
    obj("x", 1, owner={"a": 1}),
    obj("x", 1, spec={1, 2}),
)


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_store_skips_only_the_bad_object_of_a_list(
    bad: Any, store: Store, received: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    store.replace([obj("a", 1), bad, obj("z", 2)], "9")

    assert named(store) == ["a", "z"]
    assert store.synced.is_set()
    assert "is skipped" in caplog.text


def test_store_notifies_others_after_a_failing_subscriber(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(key: Key, item: Any) -> None:
        raise RecursionError("too deep")

    heard: list[Key] = []
    store.subscribe(fails)
    store.subscribe(lambda key, item: heard.append(key))

    store.replace([obj("a", 1), obj("b", 2)], "9")

    assert heard == [("n", "a"), ("n", "b")]
    assert "a change of this object was not processed" in caplog.text
