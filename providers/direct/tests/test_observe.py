"""The states of a Deployment, as its controller writes them, in our terms."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_direct.provider import provider
from kubefoundry_direct.settings import Settings
from kubefoundry_sdk._provider.contract import Observation, Replicas
from kubefoundry_sdk.testing.generated import deployment

SPEC = {"model": {"id": "org/m"}, "engine": {"type": "llamacpp"}, "scaling": {"replicas": 2}}
REFUSED = {
    "type": "ReplicaFailure",
    "status": "True",
    "reason": "FailedCreate",
    "message": 'pods "m-5d" is forbidden: exceeded quota: gpus',
}
LATE = {
    "type": "Progressing",
    "status": "False",
    "reason": "ProgressDeadlineExceeded",
    "message": 'ReplicaSet "m-5d" has timed out progressing.',
}


def seen(status: dict[str, Any], desired: int = 2, generation: int = 3, **spec: Any) -> Observation:
    live = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "m", "namespace": "n", "generation": generation},
        "spec": {"replicas": desired, **spec},
        "status": status,
    }
    return provider(Settings()).observe(deployment(SPEC), live)


def counts(replicas: int, updated: int, ready: int, *conditions: Any, observed: int = 3) -> dict[str, Any]:
    """As the controller writes them: counts of 0 are left out."""
    stated = {
        "replicas": replicas,
        "updatedReplicas": updated,
        "readyReplicas": ready,
        "availableReplicas": ready,
    }
    return {
        "observedGeneration": observed,
        "conditions": list(conditions),
        **{name: count for name, count in stated.items() if count},
    }


@pytest.mark.parametrize(
    ("status", "desired", "phase", "reason", "message"),
    [
        pytest.param(
            {},
            2,
            "Pending",
            "Progressing",
            "Kubernetes' Deployment controller has not reported on the newest generation yet",
            id="unseen",
        ),
        pytest.param(
            counts(2, 2, 0), 2, "Deploying", "Progressing", "0 of 2 replicas available", id="starting"
        ),
        pytest.param(counts(2, 2, 1), 2, "Running", "DeploymentReady", "1 of 2 replicas available", id="one"),
        pytest.param(counts(2, 2, 2), 2, "Running", "DeploymentReady", "2 of 2 replicas available", id="all"),
        pytest.param(
            counts(3, 1, 2),
            2,
            "Running",
            "DeploymentReady",
            "2 of 2 replicas available; rolling out: 1 updated, 2 of the previous spec",
            id="rollout",
        ),
        pytest.param(
            counts(4, 3, 4),
            2,
            "Running",
            "DeploymentReady",
            "2 of 2 replicas available and 2 more pods; rolling out: 3 updated, 1 of the previous spec",
            id="more than wanted",
        ),
        pytest.param(
            {"observedGeneration": 3, "availableReplicas": 2},
            2,
            "Running",
            "DeploymentReady",
            "2 of 2 replicas available; rolling out: 0 updated, 2 of the previous spec",
            id="pods of no known spec",
        ),
        pytest.param(
            counts(0, 0, 0, REFUSED),
            2,
            "Failed",
            "Failed",
            f"0 of 2 replicas available; {REFUSED['message']}",
            id="refused",
        ),
        pytest.param(
            counts(2, 1, 1, LATE),
            2,
            "Running",
            "DeploymentReady",
            f"1 of 2 replicas available; rolling out: 1 updated, 1 of the previous spec; {LATE['message']}",
            id="late, and the old one serves",
        ),
        pytest.param(counts(0, 0, 0), 0, "Pending", "ScaledToZero", "Scaled to zero", id="zero"),
        pytest.param(counts(1, 1, 1), 0, "Deploying", "Progressing", "1 pod terminating", id="to zero"),
        pytest.param(
            counts(1, 1, 1, observed=2),
            0,
            "Running",
            "DeploymentReady",
            "1 of 0 replicas available",
            id="to zero, not seen yet",
        ),
    ],
)
def test_status_is_read(status: dict[str, Any], desired: int, phase: str, reason: str, message: str) -> None:
    observation = seen(status, desired)

    assert (observation.phase, observation.reason, observation.message) == (phase, reason, message)


def progressing(replica_set: str) -> dict[str, Any]:
    return {
        "type": "Progressing",
        "status": "True",
        "reason": "ReplicaSetUpdated",
        "message": f'ReplicaSet "{replica_set}" is progressing.',
    }


@pytest.mark.parametrize(
    ("newest", "phase"),
    [
        pytest.param("m-7c7b46fbd9", "Deploying", id="of the previous spec"),
        pytest.param("m-78bff65487", "Failed", id="of the newest spec"),
    ],
)
def test_refusal_counts_while_the_spec_is_the_refused_one(newest: str, phase: str) -> None:
    refused = {**REFUSED, "message": 'pods "m-78bff65487-cgdh6" is forbidden: violates PodSecurity'}

    observation = seen(counts(1, 1, 0, progressing(newest), refused), 1)

    assert observation.phase == phase
    assert ("forbidden" in observation.message) == (phase == "Failed")


def test_refusal_counts_while_the_newest_spec_has_no_pod() -> None:
    """After a change back to an earlier spec, the Deployment names the ReplicaSet in between."""
    refused = {**REFUSED, "message": 'pods "m-78bff65487-cgdh6" is forbidden: exceeded quota: memory'}
    between = {**progressing("m-7c7b46fbd9"), "reason": "NewReplicaSetAvailable"}

    observation = seen(counts(1, 0, 1, between, refused), 1)

    assert (observation.phase, observation.message) == (
        "Running",
        "1 of 1 replica available; rolling out: 0 updated, 1 of the previous spec; " + refused["message"],
    )


def test_pods_that_are_asked_are_those_of_the_newest_spec() -> None:
    live = {"metadata": {"name": "m"}, "status": counts(2, 1, 0, progressing("m-7c7b46fbd9"))}
    pods = provider(Settings()).pods

    assert pods is not None and pods.owned
    assert pods.makers(live) == ["m-7c7b46fbd9"]
    assert pods.makers({"metadata": {"name": "m"}}) == ["m"]


def test_paused_deployment_says_what_ends_it() -> None:
    observation = seen(counts(1, 0, 1), 1, paused=True)

    assert observation.message == (
        "1 of 1 replica available; rolling out: 0 updated, 1 of the previous spec; "
        "paused: no change reaches its pods before kubectl rollout resume deployment/m -n models"
    )


def test_while_old_pods_are_left_the_status_is_of_before() -> None:
    assert [seen(status).updating for status in (counts(3, 1, 2), counts(2, 2, 1), {})] == [
        True,
        False,
        False,
    ]


def test_pods_beyond_the_requested_number_are_not_replicas() -> None:
    assert seen(counts(4, 4, 4)).replicas == Replicas(2, 2, 2)


@pytest.mark.parametrize(("observed", "expected"), [(3, None), (2, False), (None, False), ("3", False)])
def test_generation_not_named_is_unseen(observed: Any, expected: bool | None) -> None:
    assert seen({**counts(2, 2, 2), "observedGeneration": observed}).acknowledged is expected


def test_failed_rollout_is_reported_while_old_pods_serve() -> None:
    assert seen(counts(2, 1, 1, LATE)).update_failed
    assert not seen(counts(2, 1, 1)).update_failed


def test_count_of_an_autoscaler_is_the_one_that_is_wanted() -> None:
    assert seen(counts(5, 5, 4), desired=5).replicas.desired == 5


def test_autoscalers_are_reported_the_pods() -> None:
    assert seen(counts(2, 2, 2)).selector == "kubefoundry.ai/model-deployment=m"
