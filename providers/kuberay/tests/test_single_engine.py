"""A role of one engine serves nothing while that engine is replaced: Serve stops the old one first.

ray/serve/_private/deployment_state.py `_check_and_stop_outdated_version_replicas`, Ray 2.56 and 2.60; seen on
KubeRay 1.6.2, whose Ready stays True.
"""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_kuberay.observe import observe
from kubefoundry_sdk._provider.contract import Observation
from kubefoundry_sdk.testing.generated import deployment

ENGINE, INGRESS = "LLMServer:m", "OpenAiIngress"


def seen(replicas: int, application: str, deployments: dict[str, str]) -> Observation:
    spec: dict[str, Any] = {
        "model": {"id": "org/m"},
        "engine": {"type": "vllm"},
        "scaling": {"replicas": replicas},
        "resources": {"gpu": {"count": 1}},
    }
    stated = {
        "status": application,
        "message": f"the application is {application}",
        "serveDeploymentStatuses": {
            name: {"status": status, "message": f"{name} is {status}"} for name, status in deployments.items()
        },
    }
    status = {
        "serviceStatus": "Running",
        "numServeEndpoints": replicas + 1,
        "activeServiceStatus": {
            "rayClusterStatus": {"readyWorkerReplicas": replicas},
            "applicationStatuses": {"llm": stated},
        },
    }
    return observe(deployment(spec), {"status": status})


@pytest.mark.parametrize(
    ("application", "engine", "phase"),
    [
        ("DEPLOYING", "UPDATING", "Deploying"),
        ("DEPLOY_FAILED", "DEPLOY_FAILED", "Failed"),
        ("UNHEALTHY", "UNHEALTHY", "Failed"),
    ],
)
def test_only_engine_is_replaced(application: str, engine: str, phase: str) -> None:
    observation = seen(1, application, {ENGINE: engine, INGRESS: "HEALTHY"})

    assert (observation.phase, observation.replicas.ready) == (phase, 0)
    assert f"{ENGINE} is {engine}" in observation.message


@pytest.mark.parametrize(
    ("replicas", "application", "deployments"),
    [
        pytest.param(2, "DEPLOYING", {ENGINE: "UPDATING"}, id="another one serves"),
        pytest.param(2, "DEPLOY_FAILED", {ENGINE: "DEPLOY_FAILED"}, id="another one goes on"),
        pytest.param(1, "DEPLOYING", {ENGINE: "DOWNSCALING"}, id="one of two goes"),
        pytest.param(1, "DEPLOY_FAILED", {ENGINE: "HEALTHY"}, id="new code that cannot be built"),
        pytest.param(1, "DEPLOYING", {INGRESS: "UPDATING", ENGINE: "HEALTHY"}, id="the ingress only"),
        pytest.param(1, "RUNNING", {ENGINE: "HEALTHY"}, id="done"),
    ],
)
def test_something_serves(replicas: int, application: str, deployments: dict[str, str]) -> None:
    assert seen(replicas, application, deployments).phase == "Running"


def test_engine_message_follows_the_application_message() -> None:
    observation = seen(2, "DEPLOY_FAILED", {ENGINE: "DEPLOY_FAILED", INGRESS: "HEALTHY"})

    assert "the application is DEPLOY_FAILED; LLMServer:m is DEPLOY_FAILED" in observation.message
