"""`status.replicas` of a RayService, aggregated and disaggregated: its engines, never its head."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_kuberay.observe import observe
from kubefoundry_sdk._provider.contract import Replicas
from kubefoundry_sdk.testing.generated import deployment

MODEL: dict[str, Any] = {"model": {"id": "org/m"}, "engine": {"type": "vllm"}}
AGGREGATED = {**MODEL, "scaling": {"replicas": 3}, "resources": {"gpu": {"count": 1}}}
DISAGGREGATED = {
    **MODEL,
    "serving": {"mode": "disaggregated"},
    "scaling": {
        "prefill": {"replicas": 1, "gpu": {"count": 1}},
        "decode": {"replicas": 2, "gpu": {"count": 1}},
    },
}
ZERO = {**AGGREGATED, "scaling": {"replicas": 0}}


def serving(workers: int | None, application: str = "RUNNING", endpoints: int = 4) -> dict[str, Any]:
    """endpoints: pods behind the Service, the head among them."""
    return {
        "serviceStatus": "Running",
        "numServeEndpoints": endpoints,
        "activeServiceStatus": {
            "rayClusterStatus": {} if workers is None else {"readyWorkerReplicas": workers},
            "applicationStatuses": {"llm": {"status": application}},
        },
    }


@pytest.mark.parametrize("spec", [AGGREGATED, DISAGGREGATED], ids=["aggregated", "disaggregated"])
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, (3, 0, 0), id="nothing reported"),
        pytest.param(
            {"pendingServiceStatus": {"rayClusterStatus": {"readyWorkerReplicas": 3}}},
            (3, 0, 0),
            id="workers that serve nothing yet",
        ),
        pytest.param(serving(3), (3, 3, 3), id="all"),
        pytest.param(serving(2), (3, 2, 2), id="a worker short"),
        pytest.param(serving(5), (3, 3, 3), id="workers to spare"),
        pytest.param(serving(3, "DEPLOYING"), (3, 2, 2), id="one engine to come"),
        pytest.param(serving(None), (3, 3, 3), id="workers not counted"),
        pytest.param(serving(0, endpoints=1), (3, 0, 0), id="the head alone"),
    ],
)
def test_replicas(spec: dict[str, Any], status: dict[str, Any], expected: tuple[int, int, int]) -> None:
    seen = observe(deployment(spec), {"metadata": {"generation": 1}, "status": status})

    assert seen.replicas == Replicas(*expected)


def test_none_are_wanted_and_none_there_when_it_is_suspended() -> None:
    status = {"conditions": [{"type": "Suspended", "status": "True", "reason": "x", "message": "y"}]}

    seen = observe(deployment(ZERO), {"metadata": {"generation": 1}, "status": status})

    assert (seen.reason, seen.replicas) == ("ScaledToZero", Replicas(0, 0, 0))
