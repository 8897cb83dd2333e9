"""Statuses of every KubeRay version, replayed, and whatever a future one may write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_kuberay.observe import observe
from kubefoundry_sdk._api.reasons import READY, REASONS
from kubefoundry_sdk._provider.contract import Deployment, Endpoint
from kubefoundry_sdk.testing.generated import deployment

CHAT = ("openai-chat", "openai-completions")

SEQUENCES = yaml.safe_load((Path(__file__).parent / "status_sequences.yaml").read_text(encoding="utf-8"))


def asked_for(spec: dict[str, int]) -> Deployment:
    model: dict[str, Any] = {"model": {"id": "org/m"}, "engine": {"type": "vllm"}}
    if "replicas" in spec:
        return deployment({**model, "scaling": spec, "resources": {"gpu": {"count": 1}}})
    scaling = {role: {"replicas": count, "gpu": {"count": 1}} for role, count in spec.items()}
    return deployment({**model, "serving": {"mode": "disaggregated"}, "scaling": scaling})


@pytest.mark.parametrize(
    ("spec", "step"),
    [
        pytest.param(sequence["spec"], step, id=f"{sequence['name']}-{number}")
        for sequence in SEQUENCES
        for number, step in enumerate(sequence["steps"], 1)
    ],
)
def test_each_status_is_observed(spec: dict[str, int], step: dict[str, Any]) -> None:
    live: dict[str, Any] = {"metadata": {"generation": step.get("generation", 1)}}
    if "status" in step:
        live["status"] = step["status"]
    if step.get("deleting"):
        live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    seen = observe(asked_for(spec), live)

    expect = step["expect"]
    assert (seen.phase, seen.reason) == (expect["phase"], expect["reason"])
    assert expect.get("message", "") in seen.message
    assert seen.replicas.ready == seen.replicas.available == expect["ready"]
    assert seen.replicas.desired == sum(spec.values())
    assert seen.update_failed is expect.get("update_failed", False)
    assert seen.updating is expect.get("updating", False)
    apis = CHAT if "decode" in spec else ()
    assert seen.endpoint == Endpoint("m-serve-svc", 8000, model="m", apis=apis)


@pytest.mark.parametrize(("observed", "expected"), [(2, None), (1, False), (99, False), (None, False)])
def test_generation_that_kuberay_does_not_name_is_unseen(observed: Any, expected: bool | None) -> None:
    live = {"metadata": {"generation": 2}, "status": {"observedGeneration": observed}}

    assert observe(asked_for({"replicas": 2}), live).acknowledged is expected


@pytest.mark.parametrize("name", ["x" * 64, "a,b=c", "x\n", "-x", 7])
def test_scale_selects_nothing_by_an_invalid_cluster_name(name: Any) -> None:
    live = {"metadata": {}, "status": {"activeServiceStatus": {"rayClusterName": name}}}

    assert observe(asked_for({"replicas": 2}), live).selector == ""


def test_scale_selects_workers_of_the_serving_cluster() -> None:
    live = {
        "metadata": {},
        "status": {
            "activeServiceStatus": {"rayClusterName": "m-x"},
            "pendingServiceStatus": {"rayClusterName": "m-y"},
        },
    }
    shared = deployment(
        {
            "model": {"id": "org/m"},
            "engine": {"type": "vllm", "args": {"tensor-parallel-size": "1"}},
            "resources": {"gpu": {"count": 2}},
        }
    )

    assert observe(asked_for({"replicas": 2}), live).selector == "ray.io/cluster=m-x,ray.io/node-type=worker"
    assert observe(asked_for({"replicas": 2}), {"metadata": {}}).selector == ""
    assert observe(asked_for({"prefill": 1, "decode": 1}), live).selector == ""
    assert observe(shared, live).selector == ""


@pytest.mark.parametrize(("size", "ready"), [("1", 4), ("2", 2), ("4", 1), ("no number", 1)])
def test_worker_may_hold_several_engines(size: str, ready: int) -> None:
    """engine.args may have been edited to what is refused; the object is observed anyway."""
    model = deployment(
        {
            "model": {"id": "org/m"},
            "engine": {"type": "vllm", "args": {"tensor-parallel-size": size}},
            "scaling": {"replicas": 4},
            "resources": {"gpu": {"count": 4}},
        }
    )
    active = {
        "rayClusterStatus": {"readyWorkerReplicas": 1},
        "applicationStatuses": {"llm": {"status": "RUNNING"}},
    }
    status = {"serviceStatus": "Running", "numServeEndpoints": 2, "activeServiceStatus": active}

    assert observe(model, {"status": status}).replicas.ready == ready


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
TEXTS = st.sampled_from(["Ready", "Suspended", "True", "False", "Running", "RUNNING", "DEPLOY_FAILED", "Odd"])
CONDITIONS = st.lists(
    st.dictionaries(st.sampled_from(["type", "status", "reason", "message"]), TEXTS | JSON, max_size=4)
)
APPLICATIONS = st.dictionaries(
    st.text(max_size=4),
    JSON | st.dictionaries(st.sampled_from(["status", "message", "serveDeploymentStatuses"]), TEXTS | JSON),
    max_size=2,
)
CLUSTERS = JSON | st.fixed_dictionaries(
    {},
    optional={
        "applicationStatuses": APPLICATIONS | JSON,
        "rayClusterStatus": JSON | st.dictionaries(st.just("readyWorkerReplicas"), JSON),
    },
)
STATUSES = JSON | st.fixed_dictionaries(
    {},
    optional={
        "observedGeneration": JSON,
        "serviceStatus": TEXTS | JSON,
        "numServeEndpoints": st.integers() | JSON,
        "conditions": CONDITIONS | JSON,
        "activeServiceStatus": CLUSTERS,
        "pendingServiceStatus": CLUSTERS,
    },
)


@given(status=STATUSES, generation=JSON, replicas=st.integers(0, 3))
def test_any_status_has_a_phase(status: Any, generation: Any, replicas: int) -> None:
    live = {"metadata": {"generation": generation}, "status": status}

    seen = observe(asked_for({"replicas": replicas}), live)

    assert seen.phase in ("Pending", "Deploying", "Running", "Failed")
    assert seen.reason in REASONS[READY]
    assert seen.message
    assert (seen.replicas.ready > 0) == (seen.phase == "Running")
    assert seen.replicas.ready <= max(1, replicas)
    assert seen.phase == "Running" or not (seen.update_failed or seen.updating)
    assert not (seen.update_failed and seen.updating)
