"""A head pod that is lost takes every engine with it, while KubeRay's Ready stays True (seen of KubeRay 1.6.2)."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_kuberay.observe import observe
from kubefoundry_sdk._provider.contract import Observation
from kubefoundry_sdk.testing.generated import deployment

ASKED = deployment({"model": {"id": "org/m"}, "engine": {"type": "vllm"}, "resources": {"gpu": {"count": 1}}})

WRITTEN, READY, LATER, LATEST = (f"2026-11-21T15:3{minute}:00Z" for minute in range(4))


def seen(
    application: str | None,
    head: dict[str, str],
    *,
    written: str = WRITTEN,
    ready: str = READY,
    pending: dict[str, Any] | None = None,
) -> Observation:
    """written: when the provider last changed the RayService. ready: when KubeRay's Ready turned True."""
    return observe(
        ASKED,
        {
            "metadata": {
                "generation": 2,
                "managedFields": [
                    {"manager": "kuberay-operator", "operation": "Update", "time": LATEST},
                    {"manager": "kuberay-provider", "operation": "Apply", "time": written},
                ],
            },
            "status": {
                "observedGeneration": 2,
                "serviceStatus": "Running",
                "numServeEndpoints": 2,
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "reason": "NonZeroServeEndpoints",
                        "lastTransitionTime": ready,
                    }
                ],
                "activeServiceStatus": {
                    "rayClusterName": "m-a",
                    "applicationStatuses": {"llm": {"status": application}} if application else {},
                    "rayClusterStatus": {
                        "readyWorkerReplicas": 1,
                        "conditions": [{"type": "HeadPodReady", **head}],
                    },
                },
                "pendingServiceStatus": pending or {},
            },
        },
    )


def up(since: str) -> dict[str, str]:
    return {"status": "True", "reason": "HeadPodRunningAndReady", "lastTransitionTime": since}


GONE = {"status": "False", "reason": "HeadPodNotFound", "lastTransitionTime": LATER}


@pytest.mark.parametrize(
    ("application", "head", "phase"),
    [
        pytest.param(None, GONE, "Deploying", id="gone"),
        pytest.param(None, up(LATER), "Deploying", id="back, nothing submitted yet"),
        pytest.param("DEPLOYING", up(LATER), "Deploying", id="loading again"),
        pytest.param("DEPLOY_FAILED", up(LATER), "Failed", id="cannot load again"),
        pytest.param("RUNNING", up(LATER), "Running", id="serving again"),
        pytest.param("UNHEALTHY", up(LATER), "Running", id="some engine unhealthy later"),
    ],
)
def test_nothing_serves_until_the_model_is_loaded_again(
    application: str | None, head: dict[str, str], phase: str
) -> None:
    observation = seen(application, head)

    assert observation.phase == phase
    assert (observation.replicas.ready > 0) == (phase == "Running")
    if phase == "Deploying":
        assert "the head pod was lost" in observation.message


@pytest.mark.parametrize(
    ("application", "head", "more"),
    [
        pytest.param("DEPLOYING", up(WRITTEN), {}, id="an edit"),
        pytest.param("DEPLOYING", up(LATER), {"written": LATEST}, id="an edit after the head had been lost"),
        pytest.param("DEPLOY_FAILED", up(LATER), {"written": LATEST}, id="a failed edit after that"),
        pytest.param(
            None, up(WRITTEN), {"pending": {"rayClusterName": "m-b"}}, id="a second cluster is made ready"
        ),
        pytest.param("DEPLOYING", {"status": "True"}, {}, id="times are not received"),
        pytest.param("DEPLOYING", {}, {}, id="nothing is reported"),
    ],
)
def test_update_does_not_look_like_a_lost_head(
    application: str | None, head: dict[str, str], more: dict[str, Any]
) -> None:
    observation = seen(application, head, **more)

    assert observation.phase == "Running"
    assert "the head pod was lost" not in observation.message
