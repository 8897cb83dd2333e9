"""From what pods report to the one cause that is reported, and what it makes of an observation (contract §3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubefoundry_sdk.provider.contract import Endpoint, Observation, ObservedPhase, ReadyReason, Replicas
from kubefoundry_sdk.provider.health.pod_causes import Cause, cause, explain
from kubefoundry_sdk.provider.watch.pods import trim

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LABEL = "example.com/engine"


def at(seconds: float) -> str:
    """A moment so many seconds ago, as kubelet writes it."""
    return (NOW - timedelta(seconds=seconds)).isoformat(timespec="seconds").replace("+00:00", "Z")


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return container({"waiting": {"reason": reason, "message": message}}, **more)


def ended(code: int = 1, message: str = "", reason: str = "Error", lived: float = 20) -> dict[str, Any]:
    """A termination that has just happened."""
    part = {"exitCode": code, "reason": reason, "message": message}
    return {"terminated": {**part, "startedAt": at(lived + 5), "finishedAt": at(5)}}


def running(since: float = 3) -> dict[str, Any]:
    return {"running": {"startedAt": at(since)}}


def container(
    state: dict[str, Any], last: dict[str, Any] | None = None, *, restarts: int = 0, ready: bool = False
) -> dict[str, Any]:
    return {
        "name": "main",
        "image": "r/i:1",
        "ready": ready,
        "restartCount": restarts,
        "state": state,
        "lastState": last or {},
    }


def pod(*containers: dict[str, Any], name: str = "m-0", init: Any = (), **status: Any) -> dict[str, Any]:
    """As the watch keeps it."""
    whole = {
        "metadata": {
            "name": name,
            "namespace": "n",
            "resourceVersion": "1",
            "creationTimestamp": at(60),
            "labels": {LABEL: "m", "other": "x"},
        },
        "spec": {"containers": []},
        "status": {"containerStatuses": list(containers), "initContainerStatuses": list(init), **status},
    }
    return trim(whole, LABEL)


UNSCHEDULABLE: dict[str, Any] = {
    "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes fit."}
    ]
}
LOGS = "see kubectl logs -n n m-0 -c main --previous"
PULL = "; correct the image, or give the nodes access to its registry"
MEMORY = "; raise its memory, or reduce what the model needs"


@pytest.mark.parametrize(
    ("item", "failed", "message"),
    [
        pytest.param(
            pod(waiting("ErrImagePull", "rpc error: not found")),
            True,
            f"image r/i:1 of container main of pod m-0 cannot be pulled: rpc error: not found{PULL}",
            id="image refused",
        ),
        pytest.param(
            pod(waiting("ImagePullBackOff", 'Back-off pulling image "r/i:1"')),
            True,
            f"image r/i:1 of container main of pod m-0 cannot be pulled{PULL}",
            id="image refused, waiting",
        ),
        pytest.param(
            pod(waiting("ImagePullBackOff", 'Back-off pulling image "r/i:1": ErrImagePull: no such tag')),
            True,
            f"image r/i:1 of container main of pod m-0 cannot be pulled: no such tag{PULL}",
            id="image refused, waiting, said again",
        ),
        pytest.param(
            pod(waiting("InvalidImageName", 'couldn\'t parse image name "A"')),
            True,
            f'image r/i:1 of container main of pod m-0 cannot be pulled: couldn\'t parse image name "A"{PULL}',
            id="no image name",
        ),
        pytest.param(
            pod(init=[waiting("ErrImagePull", "denied")]),
            True,
            f"image r/i:1 of container main of pod m-0 cannot be pulled: denied{PULL}",
            id="image of an init container",
        ),
        pytest.param(
            pod(waiting("CreateContainerConfigError", 'secret "hf" not found')),
            True,
            'container main of pod m-0 cannot be started: secret "hf" not found; '
            "create what is missing, or correct the spec",
            id="missing Secret",
        ),
        pytest.param(
            pod(waiting("CrashLoopBackOff", "back-off 40s", restarts=3, last=ended(1, "a\nValueError: x\n"))),
            True,
            f"container main of pod m-0 keeps crashing, restarted 3 times: ValueError: x (exit code 1); {LOGS}",
            id="crash loop",
        ),
        pytest.param(
            pod(container(running(), ended(3), restarts=2)),
            True,
            f"container main of pod m-0 keeps crashing, restarted 2 times: exit code 3; {LOGS}",
            id="crash loop, between two crashes",
        ),
        pytest.param(
            pod(container(ended(1), restarts=0)),
            False,
            f"container main of pod m-0 crashed, not restarted yet: exit code 1; {LOGS}",
            id="one crash",
        ),
        pytest.param(
            pod(container(running(), ended(1), restarts=1)),
            False,
            f"container main of pod m-0 crashed, restarted once: exit code 1; {LOGS}",
            id="started again after one crash",
        ),
        pytest.param(
            pod(container(ended(137, reason="OOMKilled"))),
            True,
            f"container main of pod m-0 was killed because it ran out of memory, not restarted yet{MEMORY}",
            id="out of memory",
        ),
        pytest.param(
            pod(waiting("CrashLoopBackOff", restarts=2, last=ended(137, reason="OOMKilled"))),
            True,
            f"container main of pod m-0 was killed because it ran out of memory, restarted 2 times{MEMORY}",
            id="out of memory again and again",
        ),
        pytest.param(
            pod(**UNSCHEDULABLE),
            False,
            "pod m-0 cannot be scheduled: 0/3 nodes fit.; free or add nodes with the resources that it requests",
            id="unschedulable",
        ),
    ],
)  # fmt: skip
def test_a_pod_in_trouble_says(item: dict[str, Any], failed: bool, message: str) -> None:
    found = cause([item], NOW)

    assert found is not None
    assert (found.failed, found.message) == (failed, message)


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(pod(), id="nothing reported"),
        pytest.param(pod(waiting("ContainerCreating")), id="being created"),
        pytest.param(pod(waiting("PodInitializing")), id="being initialised"),
        pytest.param(pod(container(running(), ready=True)), id="ready"),
        pytest.param(pod(container(running(), ended(1), restarts=5, ready=True)), id="ready after crashes"),
        pytest.param(pod(container(running(1200))), id="loading for 20 minutes"),
        pytest.param(
            pod(container(running(200), ended(1, lived=20), restarts=4)), id="has outlived its last crash"
        ),
        pytest.param(pod(init=[container(ended(0), ready=True)]), id="init container done"),
        pytest.param(pod(container(running(), ended(0), restarts=1)), id="restarted after a good end"),
    ],
)
def test_a_pod_without_trouble_says_nothing(item: dict[str, Any]) -> None:
    assert cause([item], NOW) is None


def test_a_pod_that_is_being_deleted_says_nothing() -> None:
    going = pod(waiting("ErrImagePull"))
    going["metadata"]["deletionTimestamp"] = at(1)

    assert cause([going], NOW) is None


def test_a_crash_may_be_over_when_the_container_has_lived_longer_than_before() -> None:
    found = cause([pod(container(running(3), ended(1, lived=20), restarts=2))], NOW)

    assert found is not None and found.until is not None
    assert (found.until - NOW).total_seconds() == 2 * 20 + 60 - 3


def test_the_root_of_the_trouble_is_reported_whatever_the_order() -> None:
    pods = [
        pod(name="a", **UNSCHEDULABLE),
        pod(waiting("CrashLoopBackOff", restarts=3, last=ended()), name="b"),
        pod(waiting("ErrImagePull", "no"), name="d"),
        pod(waiting("ErrImagePull", "no"), name="c"),
    ]

    received = {cause(order, NOW) for order in (pods, pods[::-1])}

    [found] = received
    assert found is not None and "pod c" in found.message


def test_of_a_healthy_pod_nothing_is_kept_but_whose_it_is() -> None:
    healthy = pod(container(running(), ready=True), phase="Running", podIP="10.0.0.1")

    assert healthy["status"] == {}
    assert set(healthy) == {"metadata", "status"}
    assert healthy["metadata"]["labels"] == {LABEL: "m"}


CRASH = Cause("it crashes; do this", failed=True, rank=1)
WAIT = Cause("no node; add one", failed=False, rank=5)


@pytest.mark.parametrize(
    ("phase", "reason", "why", "expected"),
    [
        ("Deploying", "Progressing", CRASH, ("Failed", "Failed", "it crashes; do this (Up: words)")),
        ("Pending", "Progressing", CRASH, ("Failed", "Failed", "it crashes; do this (Up: words)")),
        ("Failed", "Failed", CRASH, ("Failed", "Failed", "it crashes; do this (Up: words)")),
        ("Running", "DeploymentReady", CRASH, ("Running", "DeploymentReady", "words; it crashes; do this")),
        ("Deploying", "Progressing", WAIT, ("Deploying", "Progressing", "no node; add one (Up: words)")),
        ("Pending", "Progressing", WAIT, ("Deploying", "Progressing", "no node; add one (Up: words)")),
        ("Failed", "Failed", WAIT, ("Failed", "Failed", "words; no node; add one")),
        ("Running", "DeploymentReady", WAIT, ("Running", "DeploymentReady", "words; no node; add one")),
        ("Pending", "ScaledToZero", CRASH, ("Pending", "ScaledToZero", "words")),
    ],
)
def test_a_cause_makes_failed_only_what_does_not_serve(
    phase: ObservedPhase, reason: ReadyReason, why: Cause, expected: tuple[str, str, str]
) -> None:
    seen = Observation(phase, reason, "words", Replicas(1, 0, 0), Endpoint("m", 80))

    received = explain(seen, why, "Up")

    assert (received.phase, received.reason, received.message) == expected
    assert (received.replicas, received.endpoint) == (seen.replicas, seen.endpoint)
