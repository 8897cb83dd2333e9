"""Whose a pod is, which of them are asked, and which ModelDeployment hears of a change."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._provider.upstream_pods import Pods, roles, selector
from kubefoundry_sdk._provider.watch.pods import PodWatch
from kubefoundry_sdk._runtime.store import Key

LABEL = "example.com/cluster"
EARLY, LATE = "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"
BAD = {"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ErrImagePull"}}}]}
GOOD = {"containerStatuses": [{"name": "c", "ready": True, "state": {"running": {}}}]}


def engine(*clusters: str, created: str = EARLY) -> dict[str, Any]:
    meta = {"name": "m", "namespace": "n", "creationTimestamp": created}
    return {"metadata": meta, "status": {"clusters": list(clusters)}}


def pod(name: str, cluster: str, status: dict[str, Any], version: int = 1, **meta: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "n",
            "creationTimestamp": LATE,
            "resourceVersion": str(version),
            "labels": {LABEL: cluster},
            **meta,
        },
        "status": status,
    }


@pytest.fixture
def reported() -> list[Key]:
    return []


@pytest.fixture
def watch(reported: list[Key]) -> PodWatch:
    pod_watch = PodWatch(Pods(LABEL, lambda live: live["status"]["clusters"]), reported.append)
    pod_watch.replace([], "1")
    pod_watch.upstream_changed(("n", "m"), engine("c1", "c2"))
    return pod_watch


def names(watch: PodWatch, live: dict[str, Any]) -> list[str]:
    return sorted(item["metadata"]["name"] for item in watch.of(live))


def test_watched_pods_are_those_of_all_clusters_of_the_model(watch: PodWatch) -> None:
    for name, cluster in (("a", "c1"), ("b", "c2"), ("x", "c3")):
        watch.put(pod(name, cluster, BAD))
    watch.put(pod("elsewhere", "c1", BAD, namespace="other"))

    assert names(watch, engine("c1", "c2")) == ["a", "b"]
    assert names(watch, engine("c3")) == ["x"]


def test_pods_of_an_earlier_object_of_that_name_are_not_asked(watch: PodWatch) -> None:
    watch.put(pod("old", "c1", BAD, creationTimestamp=EARLY))
    watch.put(pod("new", "c1", BAD))

    assert names(watch, engine("c1", created=LATE)) == ["new"]


def test_pod_trouble_and_its_end_notify_the_owner(watch: PodWatch, reported: list[Key]) -> None:
    watch.put(pod("a", "c1", GOOD, 1))
    watch.put(pod("x", "c3", BAD, 1))
    assert reported == []

    watch.put(pod("a", "c1", BAD, 2))
    watch.put(pod("a", "c1", GOOD, 3))
    assert reported == [("n", "m")] * 2

    watch.put(pod("a", "c1", GOOD, 4))
    assert len(reported) == 2
    watch.put(pod("a", "c1", BAD, 5))
    watch.remove(pod("a", "c1", BAD, 6))
    assert reported == [("n", "m")] * 4


def test_pods_of_an_abandoned_cluster_requeue_nothing(watch: PodWatch, reported: list[Key]) -> None:
    watch.upstream_changed(("n", "m"), engine("c2"))

    watch.put(pod("a", "c1", BAD))
    assert reported == []
    watch.upstream_changed(("n", "m"), None)
    watch.put(pod("b", "c2", BAD))
    assert reported == []


async def test_pods_are_not_read_without_permission(watch: PodWatch, reported: list[Key]) -> None:
    watch.put(pod("a", "c1", BAD))
    reported.clear()

    watch._refused()

    assert names(watch, engine("c1")) == []
    assert reported == [("n", "m")]
    # The same pod, unchanged: it has been there all the time.
    watch.replace([pod("a", "c1", BAD)], "9")
    assert names(watch, engine("c1")) == ["a"]
    await watch.wait_until_listed()


def test_with_an_owner_check_a_strangers_pod_does_not_count(reported: list[Key]) -> None:
    source = Pods(LABEL, lambda live: ["c1"], makers=lambda live: ["m-main"], owned=True)
    watch = PodWatch(source, reported.append)
    watch.replace([], "1")
    for name, reference in (
        ("own", {"kind": "StatefulSet", "name": "m-main", "controller": True}),
        ("of-a-deployment", {"kind": "ReplicaSet", "name": "m-main-7d4b9c", "controller": True}),
        ("not-controlled", {"kind": "StatefulSet", "name": "m-main"}),
        ("of-another", {"kind": "StatefulSet", "name": "other", "controller": True}),
        ("like-a-replica-set", {"kind": "StatefulSet", "name": "m-main-7d4b9c", "controller": True}),
    ):
        item = pod(name, "c1", BAD)
        item["metadata"]["ownerReferences"] = [reference]
        watch.put(item)
    watch.put(pod("nobodys", "c1", BAD))

    assert names(watch, engine()) == ["of-a-deployment", "own"]


def test_further_labels_are_selected_by() -> None:
    source = Pods(
        "app.kubernetes.io/name", lambda live: [], also={"app.kubernetes.io/part-of": "acme", "x": ""}
    )

    assert selector(source) == "app.kubernetes.io/name,app.kubernetes.io/part-of=acme,x="


def test_values_narrow_the_selector() -> None:
    assert selector(Pods(LABEL, lambda live: []), ["a", "b"]) == f"{LABEL} in (a,b)"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"type": "worker", "sub": "decode"}, {"worker", "decode"}),
        ({"type": "frontend"}, {"frontend"}),
        ({"type": "", "else": "decode"}, set()),
        (None, set()),
    ],
)
def test_pod_roles_are_read_from_its_labels(labels: dict[str, str] | None, expected: set[str]) -> None:
    source = Pods(LABEL, lambda live: [], roles=("type", "sub"))

    assert roles(source, {"metadata": {"labels": labels}}) == expected
