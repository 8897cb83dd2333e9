"""Which upstream object an Event of pods that cannot be created concerns, and how long it does."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._provider.upstream_pods import Pods
from kubefoundry_sdk._provider.watch.pod_creation import TOTAL, CreationWatch
from kubefoundry_sdk._runtime.memory_quota import OVERHEAD
from kubefoundry_sdk._runtime.store import Key

SOURCE = Pods(
    "label", lambda obj: [], makers=lambda obj: obj["makers"], creation_events="reason=FailedCreate"
)
QUOTA = 'pods "m-0" is forbidden: exceeded quota: gpus'


def upstream(*makers: str, name: str = "m", created: str = "2026-11-22T08:00:00Z") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "n", "creationTimestamp": created},
        "makers": list(makers),
    }


def event(
    kind: str, maker: str, *, name: str = "e", reason: str = "FailedCreate", namespace: str = "n"
) -> dict[str, Any]:
    meta = {
        "name": name,
        "namespace": namespace,
        "resourceVersion": "5",
        "creationTimestamp": "2026-11-22T08:00:05Z",
    }
    regarding = {"kind": kind, "name": maker}
    return {
        "metadata": meta,
        "involvedObject": regarding,
        "reason": reason,
        "message": f"create failed\n{QUOTA}",
    }


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def watch() -> tuple[CreationWatch, list[Key]]:
    reported: list[Key] = []
    return CreationWatch(SOURCE, reported.append), reported


@pytest.mark.parametrize(
    ("makers", "reported", "concerns"),
    [
        (["m"], event("StatefulSet", "m"), True),
        (["m"], event("StatefulSet", "m-0"), False),
        (["m-worker"], event("ReplicaSet", "m-worker-5d4f"), True),
        (["m-worker"], event("ReplicaSet", "m-worker-abcd-5d4f"), True),
        (["m-worker"], event("ReplicaSet", "m-worker-x-abcd-5d4f"), False),
        (["m-worker"], event("ReplicaSet", "m-workers-5d4f"), False),
        (["m-x2"], event("RayCluster", "m-x2", reason="FailedToCreateWorkerPod"), True),
        (["m-x2"], event("RayCluster", "m-x2", reason="DeletedPod"), False),
        (["m"], event("StatefulSet", "m", namespace="other"), False),
    ],
)
def test_whose_pods_they_are(makers: list[str], reported: dict[str, Any], concerns: bool) -> None:
    seen, changed = watch()
    live = upstream(*makers)
    seen.upstream_changed(("n", "m"), live)

    seen.put(reported)

    why = seen.cause(live, [])
    assert (why is not None) == concerns
    assert changed == [("n", "m")] * concerns
    if why is not None:
        regarding = reported["involvedObject"]
        assert why.message.startswith(
            f"{regarding['kind']} {regarding['name']} cannot create its pods: {QUOTA}; request"
        )
        assert why.failed


def test_creation_event_before_its_maker_is_known_counts() -> None:
    seen, _ = watch()
    seen.put(event("RayCluster", "m-x2", reason="FailedToCreateHeadPod"))
    live = upstream("m-x2")

    seen.upstream_changed(("n", "m"), live)

    assert seen.cause(live, []) is not None


@pytest.mark.parametrize(
    ("reported", "pods", "over"),
    [
        (event("StatefulSet", "m"), ["m-0"], True),
        (event("StatefulSet", "m"), ["other-0"], False),
        (event("RayCluster", "m", reason="FailedToCreateWorkerPod"), ["m-head-a"], False),
        (event("RayCluster", "m", reason="FailedToCreateWorkerPod"), ["m-head-a", "m-gpu-worker-b"], True),
        (event("RayCluster", "m", reason="FailedToCreateHeadPod"), ["m-head-a"], True),
    ],
)
def test_creation_failure_ends_with_a_pod_of_the_maker(
    reported: dict[str, Any], pods: list[str], over: bool
) -> None:
    seen, _ = watch()
    live = upstream("m")
    seen.upstream_changed(("n", "m"), live)
    seen.put(reported)

    assert (seen.cause(live, map(pod, pods)) is None) == over


def test_deleted_creation_event_is_forgotten() -> None:
    seen, changed = watch()
    live = upstream("m")
    seen.upstream_changed(("n", "m"), live)
    seen.put(event("StatefulSet", "m"))
    seen.put(event("StatefulSet", "m", name="second"))

    seen.remove(event("StatefulSet", "m"))
    seen.replace([], "7")

    assert seen.cause(live, []) is None
    assert len(changed) == 4
    assert (seen.events(), seen._events_of_name, seen._names_of_event) == ([], {}, {})


def test_events_of_an_earlier_object_of_that_name_do_not_count() -> None:
    seen, _ = watch()
    live = upstream("m", created="2026-11-22T09:00:00Z")
    seen.upstream_changed(("n", "m"), live)
    seen.put(event("StatefulSet", "m"))

    assert seen.cause(live, []) is None


@pytest.mark.parametrize(
    "foreign",
    [
        event("StatefulSet", "m" * 254),
        event("StatefulSet" * 20, "m"),
        event("StatefulSet", "m", reason="FailedCreate" * 20),
        event("StatefulSet", "m", reason="Scheduled"),
    ],
    ids=["a long name", "a long kind", "a long reason", "something else"],
)
def test_what_no_controller_writes_is_not_kept(foreign: dict[str, Any]) -> None:
    """A user who may write Events may write them a megabyte long."""
    seen, changed = watch()
    seen.upstream_changed(("n", "m"), upstream("m"))
    seen.put(event("StatefulSet", "m"))

    seen.put({**foreign, "metadata": {**foreign["metadata"], "resourceVersion": "6"}})

    assert (seen.events(), seen._events_of_name) == ([], {})
    assert len(changed) == 2


def test_events_of_one_namespace_take_bounded_memory() -> None:
    """And leave room for those of another."""
    seen, _ = watch()
    for number in range(20_000):
        seen.put(event("StatefulSet", f"m{number}", name=f"e{number}"))
    seen.put(event("StatefulSet", "m", namespace="other"))

    kept = seen.events()

    assert len(kept) * OVERHEAD < TOTAL / 2
    assert kept[-1]["metadata"]["namespace"] == "other"
