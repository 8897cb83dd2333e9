"""A RayService in a queue of Kueue: its render, its changes, and its status while Kueue suspends it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_kuberay.observe import observe
from kubefoundry_kuberay.provider import with_defaults
from kubefoundry_kuberay.render import QUEUED
from kubefoundry_kuberay.status import must_recreate
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.contract import Rendered
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.pod import QUEUE_LABEL
from kubefoundry_sdk.testing.generated import deployment

SPEC: dict[str, Any] = {
    "model": {"id": "org/model"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}
READY = {"type": "Ready", "status": "True", "reason": "NonZeroServeEndpoints"}


def rendered(queue: str | None = "models", **fields: Any) -> Rendered:
    model = deployment(SPEC | fields)
    labels = {QUEUE_LABEL: queue} if queue else {}
    return results.render(with_defaults(), replace(model, labels=labels), Schema("ray.io/v1"))


def live(*conditions: dict[str, str], suspend: bool = True, queue: str | None = "models") -> dict[str, Any]:
    serving = {"serviceStatus": "Running", "numServeEndpoints": 2} if conditions else {}
    return {
        "metadata": {"generation": 1, "labels": {QUEUE_LABEL: queue} if queue else {}},
        "spec": {"rayClusterConfig": {"suspend": suspend}},
        "status": {"observedGeneration": 1, "conditions": list(conditions), **serving},
    }


def test_queued_ray_service_has_no_autoscaler() -> None:
    queued, free = rendered(), rendered(None)

    assert "enableInTreeAutoscaling" not in queued.main["spec"]["rayClusterConfig"]
    assert free.main["spec"]["rayClusterConfig"]["enableInTreeAutoscaling"] is True
    assert (QUEUED in queued.notes, QUEUED in free.notes) == (True, False)


@pytest.mark.parametrize(
    ("before", "after", "recreates"),
    [
        (rendered(), rendered(scaling={"replicas": 2}), True),
        (rendered(), rendered(nodeSelector={"pool": "gpu"}), True),
        (rendered(), rendered(None), True),
        (rendered(None), rendered(), True),
        (rendered(), rendered("other"), False),
        (rendered(), rendered(engine={"type": "vllm", "args": {"max-model-len": "4096"}}), False),
        (rendered(None), rendered(None, scaling={"replicas": 2}), False),
    ],
    ids=["replicas", "pods", "label removed", "label added", "other queue", "engine", "not queued"],
)
def test_change_of_queued_pods_recreates_the_ray_service(
    before: Rendered, after: Rendered, recreates: bool
) -> None:
    assert (with_defaults().recreate(before, after) is not None) == recreates


@pytest.mark.parametrize(
    ("obj", "phase", "message", "recreates"),
    [
        (live(), "Deploying", "suspended by Kueue until queue models has quota", False),
        (live(READY), "Deploying", "set annotation kubefoundry.ai/refresh", True),
        (live(READY, suspend=False), "Running", "1 of 1 replicas serve", False),
        (live(READY, queue=None), "Running", "1 of 1 replicas serve", False),
    ],
    ids=["waiting", "evicted", "admitted", "no queue"],
)
def test_suspension_by_kueue_is_reported(
    obj: dict[str, Any], phase: str, message: str, recreates: bool
) -> None:
    observation = observe(deployment(SPEC), obj)

    assert (observation.phase, must_recreate(obj)) == (phase, recreates)
    assert message in observation.message
