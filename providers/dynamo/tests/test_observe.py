"""Statuses of every Dynamo version, replayed, and whatever a future one may write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_dynamo.observe import observe
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


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence["name"])
def test_sequences(sequence: dict[str, Any]) -> None:
    asked = asked_for(sequence["spec"])
    for number, step in enumerate(sequence["steps"], 1):
        live: dict[str, Any] = {"metadata": {"generation": step.get("generation", 1)}}
        live["apiVersion"] = step.get("version", "nvidia.com/v1alpha1")
        if "status" in step:
            live["status"] = step["status"]
        if step.get("deleting"):
            live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

        seen = observe(asked, live)

        expect = step["expect"]
        assert (seen.phase, seen.reason) == (expect["phase"], expect["reason"]), f"step {number}: {seen}"
        assert expect.get("message", "") in seen.message, f"step {number}"
        assert seen.replicas.ready == expect["ready"], f"step {number}"
        assert seen.replicas.desired == sum(sequence["spec"].values()), f"step {number}"
        assert seen.update_failed is expect.get("update_failed", False), f"step {number}"
        assert seen.updating is expect.get("updating", False), f"step {number}"
        assert seen.unclear is expect.get("unclear", False), f"step {number}"
        apis = CHAT if "decode" in sequence["spec"] else ()
        assert seen.endpoint == Endpoint("m-frontend", 8000, model="m", apis=apis)


def test_scale_selects_workers_in_aggregated_mode_only() -> None:
    aggregated = observe(asked_for({"replicas": 2}), {"metadata": {}})
    disaggregated = observe(asked_for({"prefill": 1, "decode": 1}), {"metadata": {}})

    assert aggregated.selector == (
        "nvidia.com/dynamo-graph-deployment-name=m,nvidia.com/dynamo-component-type=worker"
    )
    assert disaggregated.selector == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
COUNT = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("replicas", "readyReplicas", "availableReplicas"), JSON)
)
COUNTS = JSON | st.dictionaries(st.sampled_from(["Frontend", "VllmWorker", "Other"]), COUNT | JSON)
CONDITION = st.fixed_dictionaries({"type": st.just("Ready")}, optional={"reason": JSON, "message": JSON})
STATUS = JSON | st.fixed_dictionaries(
    {},
    optional={
        "state": JSON | st.sampled_from(["", "initializing", "pending", "successful", "failed"]),
        "conditions": JSON | st.lists(CONDITION | JSON, max_size=3),
        "services": COUNTS,
        "components": COUNTS,
        "observedGeneration": JSON | st.integers(0, 3),
    },
)


@given(status=STATUS, metadata=JSON | st.just({"generation": 2}), replicas=st.integers(0, 2))
def test_any_status_is_observed(status: Any, metadata: Any, replicas: int) -> None:
    seen = observe(asked_for({"replicas": replicas}), {"metadata": metadata, "status": status})

    if seen.phase == "Running":
        assert replicas > 0
        assert seen.replicas.ready > 0
    assert seen.message
    assert 0 <= seen.replicas.available <= seen.replicas.ready <= seen.replicas.desired
