"""The cause that is chosen from the states of pods, and its effect on an observation (contract §3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubefoundry_sdk._provider.contract import Endpoint, Observation, ObservedPhase, ReadyReason, Replicas
from kubefoundry_sdk._provider.health.pod_causes import Cause, Creations, cause, explain
from kubefoundry_sdk._provider.watch.pods import trim

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


def pod(
    *containers: dict[str, Any],
    name: str = "m-0",
    init: Any = (),
    made: float = 60,
    gates: Any = (),
    **status: Any,
) -> dict[str, Any]:
    """As the watch keeps it. made: seconds ago."""
    whole = {
        "metadata": {
            "name": name,
            "namespace": "n",
            "resourceVersion": "1",
            "creationTimestamp": at(made),
            "labels": {LABEL: "m", "other": "x"},
        },
        "spec": {"containers": [], "schedulingGates": [{"name": gate} for gate in gates]},
        "status": {"containerStatuses": list(containers), "initContainerStatuses": list(init), **status},
    }
    return trim(whole, LABEL)


UNSCHEDULABLE: dict[str, Any] = {
    "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes fit."}
    ]
}
GATED: dict[str, Any] = {
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
    ]
}
EVICTED: dict[str, Any] = {
    "phase": "Failed",
    "reason": "Evicted",
    "message": "The node was low on resource: memory.",
}
REFUSED: dict[str, Any] = {
    "phase": "Failed",
    "reason": "UnexpectedAdmissionError",
    "message": "Pod was rejected: Allocate failed due to no healthy devices present",
}
DESCRIBE = "see kubectl describe pod -n n m-0"
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
        pytest.param(
            pod(conditions=[UNSCHEDULABLE["conditions"][0] | {"message": 'persistentvolumeclaim "c" not found'}]),
            False,
            'pod m-0 cannot be scheduled: persistentvolumeclaim "c" not found; check the PersistentVolumeClaims that '
            "it mounts, and free or add nodes with the resources that it requests",
            id="missing claim",
        ),
        pytest.param(
            pod(gates=["example.com/queue", "example.com/quota"], **GATED),
            False,
            "pod m-0 is not scheduled because of scheduling gate example.com/queue, example.com/quota: it starts "
            "once the gate's controller, such as a job queue, has removed the gate",
            id="gated",
        ),
        pytest.param(
            pod(container(ended(137), restarts=1), **EVICTED),
            False,
            f"pod m-0 has failed: Evicted: The node was low on resource: memory.; {DESCRIBE}",
            id="evicted after a crash",
        ),
        pytest.param(
            pod(**REFUSED),
            False,
            "pod m-0 has failed: UnexpectedAdmissionError: Pod was rejected: Allocate failed due to no healthy "
            f"devices present; {DESCRIBE}",
            id="refused by the kubelet",
        ),
        pytest.param(
            pod(container(ended(3, "x\nKeyError: 'a'\nEOFError"), restarts=4), phase="Failed"),
            False,
            f"pod m-0 has failed: container main ended: KeyError: 'a' (exit code 3); {DESCRIBE}",
            id="never restarted",
        ),
        pytest.param(
            pod(
                waiting(
                    "CrashLoopBackOff",
                    restarts=4,
                    last=ended(1, "ValueError: heads\nRuntimeError: Engine core failed. See root cause above."),
                )
            ),
            True,
            f"container main of pod m-0 keeps crashing, restarted 4 times: ValueError: heads (exit code 1); {LOGS}",
            id="cause before the follow-up error",
        ),
    ],
)  # fmt: skip
def test_failing_pod_has_its_cause(item: dict[str, Any], failed: bool, message: str) -> None:
    reported = cause([item], NOW)

    assert reported is not None
    assert (reported.failed, reported.message) == (failed, message)


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
        pytest.param(pod(container(ended(1), restarts=9), phase="Succeeded"), id="succeeded"),
    ],
)
def test_healthy_pod_has_no_cause(item: dict[str, Any]) -> None:
    assert cause([item], NOW) is None


def test_pod_being_deleted_has_no_cause() -> None:
    going = pod(waiting("ErrImagePull"))
    going["metadata"]["deletionTimestamp"] = at(1)

    assert cause([going], NOW) is None


def test_crash_is_over_once_the_container_lives_longer() -> None:
    reported = cause([pod(container(running(3), ended(1, lived=20), restarts=2))], NOW)

    assert reported is not None and reported.until is not None
    assert (reported.until - NOW).total_seconds() == 2 * 20 + 60 - 3


def test_root_cause_does_not_depend_on_the_order_of_pods() -> None:
    pods = [
        pod(name="a", **UNSCHEDULABLE),
        pod(waiting("CrashLoopBackOff", restarts=3, last=ended()), name="b"),
        pod(waiting("ErrImagePull", "no"), name="d"),
        pod(waiting("ErrImagePull", "no"), name="c"),
    ]

    received = {cause(order, NOW) for order in (pods, pods[::-1])}

    [reported] = received
    assert reported is not None and "pod c" in reported.message


@pytest.mark.parametrize(
    "live",
    [
        pytest.param(pod(waiting("ErrImagePull", "no"), name="m-1"), id="image"),
        pytest.param(pod(waiting("CrashLoopBackOff", restarts=3, last=ended()), name="m-1"), id="crash loop"),
        pytest.param(pod(name="m-1", **UNSCHEDULABLE), id="unschedulable"),
        pytest.param(pod(name="m-1", **GATED), id="gated"),
    ],
)
def test_live_pod_precedes_finished_pods(live: dict[str, Any]) -> None:
    dead = [pod(container(ended(137), restarts=9), name=f"m-{number}", **EVICTED) for number in (0, 2)]

    reported = cause([*dead, live], NOW)

    assert reported is not None and "pod m-1" in reported.message and not reported.past


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, "devices present; 1 other pod failed"),
        (2, ", and so have 1 other pod; 1 other pod failed"),
        (11, ", and so have 10 other pods; 1 other pod failed"),
        (12, ", and so have more than 10 other pods; 1 other pod failed"),
        (101, ", and so have more than 10 other pods; 1 other pod failed"),
        (102, ", and so have more than 100 other pods; 1 other pod failed"),
        (2000, ", and so have more than 1000 other pods; 1 other pod failed"),
    ],
)
def test_failed_pods_are_counted(count: int, expected: str) -> None:
    refused = [pod(name=f"m-{number:04}", made=5000 - number, **REFUSED) for number in range(count)]

    reported = cause([pod(name="old", made=9000, **EVICTED), *refused[::-1]], NOW)

    assert reported is not None and reported.past
    assert (
        reported.message.startswith("pod m-0000 has failed: UnexpectedAdmissionError")
        and expected in reported.message
    )


def test_pods_that_failed_for_other_reasons_are_counted() -> None:
    pods = [
        pod(name="m-1", made=30, **EVICTED),
        pod(container(ended(1)), name="m-2", made=20, phase="Failed"),
        pod(container(ended(2)), name="m-3", made=15, phase="Failed"),
        pod(container(ended(1)), name="m-4", made=10, phase="Failed"),
    ]

    received = {reported.message for order in (pods, pods[::-1]) if (reported := cause(order, NOW))}

    [words] = received
    assert words.startswith("pod m-2 has failed: container main ended: exit code 1, and so have 1 other pod")
    assert "; 2 other pods failed for other reasons; see kubectl describe pod" in words


def test_many_failed_pods_change_the_message_rarely() -> None:
    pods: list[dict[str, Any]] = []
    messages = set()
    for number in range(500):
        pods.append(pod(name=f"m-{number:04}", made=5000 - number, **REFUSED))
        messages.add(str(cause(pods, NOW)))

    assert len(messages) == 13


def test_slow_container_creation_is_reported_after_a_minute() -> None:
    creations = Creations()
    starting = [pod(waiting("ContainerCreating")), pod(waiting("PodInitializing"), name="m-1")]

    assert creations.overdue(starting[:1], 100.0) == (frozenset(), 60.0)
    assert creations.overdue(starting, 130.0) == (frozenset(), 30.0)
    assert creations.overdue(starting, 160.0) == (frozenset({"m-0"}), 30.0)
    assert creations.overdue([starting[0], pod(container(running()), name="m-1")], 190.0) == (
        frozenset({"m-0"}),
        None,
    )
    assert creations.overdue([pod(waiting("ContainerCreating"), made=1)], 200.0) == (frozenset(), 60.0)

    reported = cause(starting, NOW, {"m-1"})
    assert reported is not None
    assert (reported.failed, reported.message) == (
        False,
        "container main of pod m-1 has been waiting to be created for more than a minute: its image is still being "
        "pulled, or a volume cannot be attached or mounted; see the Events in kubectl describe pod -n n m-1",
    )


def test_healthy_pod_keeps_only_its_owner_and_its_start() -> None:
    healthy = pod(container(running(), ready=True), phase="Running", podIP="10.0.0.1")

    assert healthy["status"] == {}
    assert set(healthy) == {"metadata", "status", "reached"}
    assert healthy["metadata"]["labels"] == {LABEL: "m"}


CRASH = Cause("it crashes; do this", failed=True, rank=1)
WAIT = Cause("no node; add one", failed=False, rank=5)
PAST = Cause("evicted; see it", failed=False, rank=7, past=True)


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
        ("Deploying", "Progressing", PAST, ("Deploying", "Progressing", "evicted; see it (Up: words)")),
        ("Failed", "Failed", PAST, ("Failed", "Failed", "words; evicted; see it")),
        ("Running", "DeploymentReady", PAST, ("Running", "DeploymentReady", "words")),
        ("Pending", "ScaledToZero", CRASH, ("Pending", "ScaledToZero", "words")),
    ],
)
def test_pod_cause_fails_only_a_model_that_does_not_serve(
    phase: ObservedPhase, reason: ReadyReason, why: Cause, expected: tuple[str, str, str]
) -> None:
    seen = Observation(phase, reason, "words", Replicas(1, 0, 0), Endpoint("m", 80))

    received = explain(seen, why, "Up")

    assert (received.phase, received.reason, received.message) == expected
    assert (received.replicas, received.endpoint) == (seen.replicas, seen.endpoint)
