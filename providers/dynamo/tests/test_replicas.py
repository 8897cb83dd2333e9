"""`status.replicas` of a graph, aggregated and disaggregated: its workers, never its frontend."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_dynamo.observe import observe
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
UP = {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}
DOWN = {"replicas": 1, "readyReplicas": 0, "availableReplicas": 0}


def count(replicas: int, ready: int, available: int) -> dict[str, int]:
    return {"replicas": replicas, "readyReplicas": ready, "availableReplicas": available}


@pytest.mark.parametrize("field", ["services", "components"])
@pytest.mark.parametrize(
    ("spec", "state", "counts", "expected"),
    [
        pytest.param(AGGREGATED, "", {}, (3, 0, 0), id="nothing reported"),
        pytest.param(
            AGGREGATED,
            "pending",
            {"Frontend": UP, "VllmWorker": count(3, 0, 0)},
            (3, 0, 0),
            id="frontend alone",
        ),
        pytest.param(
            AGGREGATED,
            "pending",
            {"Frontend": DOWN, "VllmWorker": count(3, 2, 2)},
            (3, 2, 0),
            id="no frontend",
        ),
        pytest.param(
            AGGREGATED, "pending", {"Frontend": UP, "VllmWorker": count(3, 2, 1)}, (3, 2, 1), id="some"
        ),
        pytest.param(
            AGGREGATED, "successful", {"Frontend": UP, "VllmWorker": count(3, 3, 3)}, (3, 3, 3), id="all"
        ),
        pytest.param(AGGREGATED, "successful", {}, (3, 3, 3), id="all, of an operator that counts nothing"),
        pytest.param(AGGREGATED, "pending", {}, (3, 0, 0), id="none, of an operator that counts nothing"),
        pytest.param(
            DISAGGREGATED,
            "pending",
            {"Frontend": UP, "VllmPrefillWorker": count(1, 1, 1), "VllmDecodeWorker": count(2, 0, 0)},
            (3, 1, 0),
            id="prefill without decode",
        ),
        pytest.param(
            DISAGGREGATED,
            "pending",
            {"Frontend": UP, "VllmPrefillWorker": count(1, 1, 1), "VllmDecodeWorker": count(2, 1, 1)},
            (3, 2, 2),
            id="both, one to come",
        ),
        pytest.param(
            DISAGGREGATED,
            "successful",
            {"Frontend": UP, "VllmPrefillWorker": count(1, 1, 1), "VllmDecodeWorker": count(2, 2, 2)},
            (3, 3, 3),
            id="both",
        ),
    ],
)
def test_replicas(
    field: str, spec: dict[str, Any], state: str, counts: dict[str, Any], expected: tuple[int, int, int]
) -> None:
    # operators that count pods came before those that name the generation
    counted = {field: counts, "observedGeneration": 1} if counts else {}
    status = {"state": state, **counted}

    seen = observe(deployment(spec), {"metadata": {"generation": 1}, "status": status})

    assert seen.replicas == Replicas(*expected)
