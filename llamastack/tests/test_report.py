"""Tests the status as a function of values: phases, rows and their times."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_llamastack import reasons, report
from kubefoundry_llamastack.model_deployments import Resolved
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_llamastack.snapshot import Answer, Obstacle, Snapshot

Make = Callable[..., Distribution]
Object = dict[str, Any]

BEFORE, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"
PROVIDERS = {"inference": [{"providerId": "echo", "image": "example.com/echo:1"}]}


def pod(**state: Any) -> Object:
    status = {"initContainerStatuses": [{"name": "external-provider-echo", "state": state}]}
    return {"metadata": {"name": "a"}, "status": status}


def live(desired: int, available: int, *, minimum: bool, rollout: Object | None = None) -> Object:
    reported = {"type": "Available", "status": "True" if minimum else "False"}
    numbers = {"availableReplicas": available, "updatedReplicas": available, "replicas": desired}
    return {
        "metadata": {"generation": 1},
        "spec": {"replicas": desired},
        "status": {
            "observedGeneration": 1,
            "conditions": [reported, *([rollout] if rollout else [])],
            **numbers,
        },
    }


@pytest.mark.accept("FR-028")
@pytest.mark.parametrize(
    ("state", "time"),
    [
        ({"waiting": {"reason": "PodInitializing"}}, BEFORE),
        ({"waiting": {"reason": "ContainerCreating"}}, BEFORE),
        ({"running": {}}, NOW),
        ({"terminated": {"exitCode": 1}}, NOW),
    ],
    ids=["the same", "another message", "another phase", "failed"],
)
def test_provider_row_time_changes_only_with_phase(make: Make, state: Object, time: str) -> None:
    cr = make(externalProviders=PROVIDERS)
    first = report.status(Snapshot(cr, pods=[pod(waiting={"reason": "PodInitializing"})]), {}, BEFORE)

    second = report.status(Snapshot(cr, pods=[pod(**state)]), first, NOW)

    assert first["externalProviderStatus"][0]["lastTransitionTime"] == BEFORE
    assert second["externalProviderStatus"][0]["lastTransitionTime"] == time


def test_model_row_time_changes_only_with_readiness(make: Make) -> None:
    cr = make(modelDeployments=[{"name": "llama"}])
    rows = [Resolved("llama", "llama", "http://a", True, "Resolved", "")]
    rows.append(Resolved("llama", "llama", "http://b", True, "Resolved", ""))
    rows.append(Resolved("llama", "llama", "http://b", False, "HoldingLastEndpoint", "gone"))
    status: Object = {}
    times = []

    for row, now in zip(rows, (BEFORE, NOW, NOW), strict=True):
        status = report.status(Snapshot(cr, resolved=[row]), status, now)
        times.append(status["modelDeployments"][0]["lastTransitionTime"])

    assert times == [BEFORE, BEFORE, NOW]


REFUSED = Obstacle(reasons.DEPLOYMENT_READY, "ApplyRejected", "no")
WAITS = Obstacle(reasons.DEPLOYMENT_READY, "WaitingForModelDeployments", "no")
STORAGE = Obstacle(reasons.STORAGE_READY, "StorageFailed", "no")


@pytest.mark.parametrize(
    ("deployment", "obstacles", "failed_pod", "phase"),
    [
        (None, (), False, "Pending"),
        (None, (REFUSED,), False, "Failed"),
        (None, (WAITS,), False, "Pending"),
        (None, (STORAGE,), False, "Pending"),
        (live(1, 0, minimum=False), (), False, "Initializing"),
        (live(1, 0, minimum=False), (), True, "Failed"),
        (live(2, 1, minimum=False), (), True, "Initializing"),
        (live(1, 1, minimum=True), (), True, "Ready"),
        (live(1, 1, minimum=True), (REFUSED,), False, "Ready"),
        (live(0, 0, minimum=True), (), False, "Pending"),
    ],
    ids=[
        *("nothing", "refused", "waits for models", "storage alone", "starts", "fails", "one of two serves"),
        *("new pods fail", "refused while it serves", "scaled to 0"),
    ],
)
def test_phase_follows_counts_and_failures(
    make: Make, deployment: Object | None, obstacles: tuple[Obstacle, ...], failed_pod: bool, phase: str
) -> None:
    cr = make(externalProviders=PROVIDERS)
    pods = [pod(terminated={"exitCode": 1})] if failed_pod else []

    status = report.status(Snapshot(cr, deployment, pods=pods, obstacles=obstacles), {}, NOW)

    assert status["phase"] == phase


@pytest.mark.accept("FR-028")
def test_removed_provider_has_no_row(make: Make) -> None:
    before = report.status(Snapshot(make(externalProviders=PROVIDERS)), {}, BEFORE)

    after = report.status(Snapshot(make()), before, NOW)

    assert len(before["externalProviderStatus"]) == 1
    assert "externalProviderStatus" not in after
    assert reasons.PROVIDERS_READY not in {item["type"] for item in after["conditions"]}


def test_refused_spec_has_no_rows(make: Make) -> None:
    """It may name thousands of providers, and none of them is installed."""
    refused = Obstacle(reasons.DEPLOYMENT_READY, "InvalidSpec", "too many")

    status = report.status(Snapshot(make(externalProviders=PROVIDERS), obstacles=(refused,)), {}, NOW)

    assert "externalProviderStatus" not in status


LAST = {"terminated": {"exitCode": 1, "message": "ERROR: no\nCode: ImportFailed\n\nResolution: mend it"}}
RESTARTING: list[dict[str, Any]] = [
    {"state": LAST},
    {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": LAST},
    {"state": {"running": {}}, "lastState": LAST, "ready": False, "started": False},
    {"state": LAST, "lastState": LAST},
]


@pytest.mark.accept("HP-5")
@pytest.mark.parametrize(
    ("kind", "name"),
    [("containerStatuses", "llama-stack"), ("initContainerStatuses", "external-provider-echo")],
)
def test_failure_is_reported_until_container_recovers(make: Make, kind: str, name: str) -> None:
    cr = make(externalProviders=PROVIDERS)
    status: dict[str, Any] = {}
    problems: list[tuple[Any, ...]] = []

    for cycle in range(5):
        for state in RESTARTING:
            reported = {kind: [{"name": name, "restartCount": cycle, **state}]}
            pods = [{"metadata": {"name": "a"}, "status": reported}]
            status = report.status(Snapshot(cr, live(1, 0, minimum=False), pods=pods), status, NOW)
            conditions = {item["type"]: (item["reason"], item["message"]) for item in status["conditions"]}
            problems.append((status["phase"], conditions, status["externalProviderStatus"]))

    assert all(problem == problems[0] for problem in problems)
    assert problems[0][0] == "Failed"


def test_failure_is_dropped_when_container_recovered(make: Make) -> None:
    serves = {"name": "llama-stack", "state": {"running": {}}, "lastState": LAST, "ready": True}
    pods = [{"metadata": {"name": "a"}, "status": {"containerStatuses": [serves]}}]

    status = report.status(Snapshot(make(), live(1, 1, minimum=True), pods=pods), {}, NOW)

    assert status["phase"] == "Ready"
    assert {item["reason"] for item in status["conditions"]} & {"DeploymentReady"}


def test_override_of_base_provider_is_reported(make: Make) -> None:
    warning = "External provider 'echo' overrides base provider in API 'inference'"
    merged = {
        "name": "merge-config",
        "state": {"terminated": {"exitCode": 0, "message": json.dumps({"warnings": [warning]})}},
    }
    installed = {"name": "external-provider-echo", "state": {"terminated": {"exitCode": 0}}}
    serves = {"name": "llama-stack", "state": {"running": {}}, "ready": True}
    merge_pod = {
        "metadata": {"name": "a"},
        "status": {"initContainerStatuses": [installed, merged], "containerStatuses": [serves]},
    }

    status = report.status(
        Snapshot(make(externalProviders=PROVIDERS), live(1, 1, minimum=True), pods=[merge_pod]), {}, NOW
    )

    [reported] = [item for item in status["conditions"] if item["type"] == reasons.PROVIDERS_READY]
    assert reported["status"] == "True"
    assert warning in reported["message"]


@pytest.mark.accept("FR-026")
@pytest.mark.parametrize(
    ("api", "running", "warned"),
    [
        ("inference", "remote::later", True),
        ("inference", "remote::echo", False),
        # another provider of the distribution's own, by chance of the same id
        ("safety", "inline::other", False),
    ],
    ids=["another type", "the same", "another API"],
)
def test_runtime_type_mismatch_is_reported(make: Make, api: str, running: str, warned: bool) -> None:
    facts = {"package": "acme-echo", "version": "1.0.0", "providerType": "remote::echo", "warnings": []}
    installed_pod = pod(terminated={"exitCode": 0, "message": json.dumps(facts)})
    installed_pod["status"]["containerStatuses"] = [
        {"name": "llama-stack", "state": {"running": {}}, "ready": True}
    ]
    listed = {"api": api, "provider_id": "echo", "provider_type": running, "config": {}}
    cr = make(externalProviders=PROVIDERS)

    status = report.status(
        Snapshot(cr, live(1, 1, minimum=True), pods=[installed_pod], answer=Answer([listed])), {}, NOW
    )

    [ready_condition] = [item for item in status["conditions"] if item["type"] == reasons.PROVIDERS_READY]
    assert ready_condition["status"] == "True"
    assert (
        "WARNING: provider 'echo' has the type remote::later at run time" in ready_condition["message"]
    ) is warned


def refused_set(replicas: int = 1) -> Object:
    failure = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: q"}
    return {"metadata": {}, "spec": {"replicas": replicas}, "status": {"conditions": [failure]}}


@pytest.mark.accept("HP-5")
@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        ([], "PodCreationRefused"),
        ([pod(waiting={"reason": "PodInitializing"})], "DeploymentPending"),
        ([pod(terminated={"exitCode": 1})], "CrashLoop"),
    ],
    ids=["none made", "made since", "made since, and failed"],
)
def test_creation_refusal_hides_no_newer_problem(make: Make, pods: list[Object], reason: str) -> None:
    cr = make(externalProviders=PROVIDERS)

    status = report.status(Snapshot(cr, live(1, 0, minimum=False), refused_set(), pods), {}, NOW)

    assert status["conditions"][0]["reason"] == reason


def test_creation_refusal_is_reported_when_some_pods_exist(make: Make) -> None:
    pods = [pod(waiting={"reason": "PodInitializing"})]

    status = report.status(
        Snapshot(make(externalProviders=PROVIDERS), live(2, 0, minimum=False), refused_set(2), pods), {}, NOW
    )

    assert status["conditions"][0]["reason"] == "PodCreationRefused"


SERVICE = {"metadata": {"name": "chat-service"}, "spec": {"selector": {"app": "llama-stack"}}}
ELSEWHERE = {"metadata": {"name": "chat-service"}, "spec": {"type": "ExternalName", "externalName": "a.b"}}
LISTED = {"api": "inference", "provider_id": "base", "provider_type": "remote::b", "config": {}}
SERVES = live(1, 1, minimum=True)
PORT = {"port": 8321}


def health(status: Object) -> tuple[str, str]:
    [found] = [item for item in status["conditions"] if item["type"] == reasons.HEALTH_CHECK]
    return found["status"], found["reason"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer([LISTED], "0.7.3"), ("True", "HealthCheckPassed")),
        (Answer(problem="no answer"), ("False", "HealthCheckFailed")),
        (None, ("Unknown", "HealthCheckPending")),
    ],
    ids=["passed", "failed", "never asked"],
)
def test_operator_restart_keeps_last_answer(
    make: Make, answer: Answer | None, expected: tuple[str, str]
) -> None:
    cr = make(containerSpec=PORT)
    before = report.status(Snapshot(cr, SERVES, service=SERVICE, answer=answer), {}, BEFORE)

    after = report.status(Snapshot(cr, SERVES, service=SERVICE), before, NOW)

    assert health(after) == expected
    assert after == before
    assert report.announcements(before, after) == []


@pytest.mark.parametrize(
    ("generation", "deployment", "service", "expected"),
    [
        (2, SERVES, SERVICE, ("Unknown", "HealthCheckPending")),
        (1, live(1, 0, minimum=False), SERVICE, ("False", "DeploymentNotReady")),
        (1, SERVES, ELSEWHERE, ("Unknown", "HealthCheckPending")),
        (1, SERVES, None, ("Unknown", "HealthCheckPending")),
    ],
    ids=["edited", "no pod serves", "another server", "no Service"],
)
def test_operator_restart_keeps_no_stale_answer(
    make: Make, generation: int, deployment: Object, service: Object | None, expected: tuple[str, str]
) -> None:
    cr = make(containerSpec=PORT)
    before = report.status(Snapshot(cr, SERVES, service=SERVICE, answer=Answer([LISTED])), {}, BEFORE)

    after = report.status(
        Snapshot(replace(cr, generation=generation), deployment, service=service), before, NOW
    )

    assert health(after) == expected
    assert "providers" not in after["distributionConfig"]


ROLLING = {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}
COMPLETE = {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}
STALLED = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
STARTED = live(1, 0, minimum=False, rollout=ROLLING)
READY = live(1, 1, minimum=True, rollout=COMPLETE)
SURGE = live(1, 1, minimum=True, rollout=ROLLING)
SURGE["status"]["replicas"] = 2
LOST = live(1, 0, minimum=False, rollout=COMPLETE)
LOST["status"]["updatedReplicas"] = 1
SCALED_UP = live(2, 1, minimum=False, rollout=COMPLETE)
SCALED_UP["status"]["updatedReplicas"] = 2
STOPPED = live(1, 0, minimum=False, rollout=COMPLETE)
STOPPED["status"]["replicas"] = 0
REPLACED = [
    live(1, 1, minimum=True, rollout=COMPLETE),
    live(1, 0, minimum=False, rollout=COMPLETE),
    STOPPED,
    STARTED,
    READY,
]
"""A rollout with the strategy Recreate: the last one's reason remains until the new ReplicaSet is made."""
REPLACED[0]["status"]["updatedReplicas"] = 0


@pytest.mark.parametrize(
    ("deployments", "warnings"),
    [
        ((STARTED, READY), []),
        ((STARTED, READY, SURGE, READY), []),
        ((STARTED, READY, STARTED, READY), []),
        ((STARTED, READY, live(2, 1, minimum=False, rollout=COMPLETE)), []),
        ((STARTED, READY, live(0, 0, minimum=True, rollout=COMPLETE)), []),
        ((STARTED, READY, *REPLACED), []),
        ((STARTED, READY, LOST, LOST, READY), ["PodsUnavailable"]),
        ((STARTED, READY, SURGE, live(1, 0, minimum=False, rollout=STALLED)), ["PodsUnavailable"]),
    ],
    ids=[
        *("start", "rollout", "replaced at once", "scaled up", "scaled to 0"),
        *("recreated", "pod lost", "stalled"),
    ],
)
def test_only_failures_are_warnings(make: Make, deployments: tuple[Object, ...], warnings: list[str]) -> None:
    cr = make(containerSpec=PORT)
    status: Object = {}
    announced: list[str] = []

    for deployment in deployments:
        # The operator has asked the server by the time of the next event.
        first = report.status(Snapshot(cr, deployment, service=SERVICE), status, NOW)
        second = report.status(Snapshot(cr, deployment, service=SERVICE, answer=Answer([])), first, NOW)
        events = [*report.announcements(status, first), *report.announcements(first, second)]
        announced += [reason for is_good, reason, _ in events if not is_good]
        status = second

    assert announced == warnings


@pytest.mark.parametrize(
    ("ready", "expected"), [(False, "0 of 1 new pods"), (True, "1 of 1 new pods")], ids=["starts", "serves"]
)
@pytest.mark.parametrize(("rollout", "start"), [(ROLLING, "Deployment is pending: "), (STALLED, "")])
def test_rollout_counts_new_pods(make: Make, rollout: Object, start: str, ready: bool, expected: str) -> None:
    serves = {"name": "llama-stack", "state": {"running": {}}, "ready": ready}
    condition = {"type": "Ready", "status": str(ready)}
    newest = {"metadata": {"name": "a"}, "status": {"containerStatuses": [serves], "conditions": [condition]}}
    surge = live(1, 1, minimum=True, rollout=rollout)
    surge["status"]["replicas"] = 2

    status = report.status(Snapshot(make(), surge, pods=[newest]), {}, NOW)

    assert status["conditions"][0]["message"].startswith(f"{start}{expected} are available")


@pytest.mark.parametrize(
    ("deployment", "expected"),
    [(LOST, "0 of 1 pods"), (SCALED_UP, "Deployment is pending: 1 of 2 pods")],
    ids=["pod lost", "scaled up"],
)
def test_pods_are_not_called_new_without_rollout(make: Make, deployment: Object, expected: str) -> None:
    status = report.status(Snapshot(make(), deployment), {"availableReplicas": 1}, NOW)

    assert status["conditions"][0]["message"].startswith(f"{expected} are available")
