"""Workspace statuses in KubeFoundry's terms: every KAITO version, and whatever a future one may write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_kaito.observe import observe
from kubefoundry_sdk._provider.contract import Endpoint, Observation, Replicas
from kubefoundry_sdk.testing.generated import deployment
from support.timelines import State, states
from support.upstream import requires_shared

CHAT = ("openai-chat", "openai-completions")

SEQUENCES = yaml.safe_load((Path(__file__).parent / "status_sequences.yaml").read_text(encoding="utf-8"))

SPEC: dict[str, Any] = {"model": {"id": "o/m"}, "engine": {"type": "llamacpp"}, "image": "example/i:1"}
MODEL = deployment(SPEC, "gemma")


def observed(status: Any, **metadata: Any) -> Observation:
    return observe(MODEL, {"metadata": {"name": "gemma", **metadata}, "status": status})


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence["name"])
def test_sequences(sequence: dict[str, Any]) -> None:
    conditions: dict[str, dict[str, str]] = {}
    for step in sequence["steps"]:
        conditions |= {item["type"]: item for item in map(condition, step.get("conditions", ()))}
        status: dict[str, Any] = (
            {"conditions": list(conditions.values())} if conditions else {"targetNodeCount": 1}
        )

        observation = observed(status | ({"state": step["state"]} if "state" in step else {}))

        assert (observation.phase, observation.reason, observation.message) == (
            step["phase"],
            step["reason"],
            step["message"],
        )
        ready = 1 if step["phase"] == "Running" else 0
        assert observation.replicas == Replicas(desired=1, ready=ready, available=ready)


def condition(text: str) -> dict[str, str]:
    head, _, message = text.partition(": ")
    type_, _, rest = head.partition("=")
    status, _, reason = rest.partition("/")
    return {"type": type_, "status": status, "reason": reason, "message": message}


@pytest.mark.parametrize(("server", "name", "apis"), [("aikit", "", ()), ("llama-server", "m", CHAT)])
def test_endpoint_is_the_service_with_the_served_model_name(
    server: str, name: str, apis: tuple[str, ...]
) -> None:
    overrides = {"provider": {"name": "kaito", "overrides": {"llamacppServer": server}}}

    seen = observe(replace(MODEL, spec=deployment({**SPEC, **overrides}).spec), {"status": {}})

    assert seen.endpoint == Endpoint("gemma", 80, model=name, apis=apis)


@pytest.mark.parametrize(("generation", "acknowledged"), [(1, None), (2, None), (3, False), ("3", None)])
def test_generation_above_the_workspaces_proves_nothing(generation: Any, acknowledged: bool | None) -> None:
    ready = {**condition("InferenceReady=True/Yes: up"), "observedGeneration": generation}

    observation = observed({"conditions": [ready]}, generation=2)

    assert (observation.phase, observation.acknowledged) == ("Running", acknowledged)


def test_workspace_that_is_being_deleted_serves_no_more() -> None:
    serving = {"state": "Ready", "conditions": [condition("InferenceReady=True/Yes: up")]}

    observation = observed(serving, deletionTimestamp="2026-11-21T08:18:44Z")

    assert (observation.phase, observation.message) == ("Deploying", "The Workspace is being deleted")


P, D, R, F = "Pending", "Deploying", "Running", "Failed"

RECORDED = {
    "kaito-0.12-create": {
        "ws-tmpl": {2: P, 3: P, 5: P, 6: P, 26: D, 38: R},
        "ws-preset": {7: P, 8: P, 10: P, 11: P, 30: D, 39: R},
    },
    "kaito-0.12-preset": {
        "p1": {2: P, 3: P, 5: P, 6: P, 12: D, 35: R, 54: D, 59: D},
        "p1-nobench": {7: P, 20: P, 21: P, 22: P, 26: D, 36: R, 55: D, 58: D},
        "p2": {38: P, 39: P, 40: P, 42: P, 46: D, 52: D, 56: D, 66: D},
    },
    "kaito-0.12-bad": {
        "u1": {2: P, 4: P, 5: P, 6: P, 14: D, 54: D},
        "c1": {7: P, 15: P, 16: P, 17: P, 31: D, 55: R, 64: F, 86: R},
        "i1": {9: P, 24: P, 25: P, 26: P, 47: D, 56: R, 65: F, 87: R},
        "nonode": {11: P, 35: P, 40: P, 41: P, 42: D},
    },
}
"""Line of the recording -> phase expected from then on."""


def replayed(recording: str) -> dict[str, dict[int, Observation]]:
    observations: dict[str, dict[int, Observation]] = {}
    for state in states(recording, "workspaces"):
        observations.setdefault(state.name, {})[state.line] = replay(state)
    return observations


def replay(state: State) -> Observation:
    deleting = {"deletionTimestamp": "2026-11-21T08:18:44Z"} if state.deleting else {}
    return observed(dict(state.status), generation=state.generation, **deleting)


@requires_shared
@pytest.mark.parametrize("recording", RECORDED)
def test_recordings_are_replayed(recording: str) -> None:
    observations = replayed(recording)

    phases = {
        name: {line: seen.phase for line, seen in lines.items()} for name, lines in observations.items()
    }
    assert phases == RECORDED[recording]


@requires_shared
@pytest.mark.parametrize(
    ("recording", "name", "line", "words"),
    [
        ("kaito-0.12-bad", "nonode", 42, "Not enough Nodes are ready"),
        ("kaito-0.12-bad", "u1", 54, "8 Insufficient nvidia.com/gpu"),
        ("kaito-0.12-bad", "c1", 64, "last termination: exit code 1"),
        ("kaito-0.12-bad", "i1", 65, "Back-off pulling image aikit:1"),
        ("kaito-0.12-preset", "p1-nobench", 36, "no KAITO_BENCHMARK_RESULT line found in pod logs"),
    ],
)
def test_messages_carry_kaitos_own_words(recording: str, name: str, line: int, words: str) -> None:
    assert words in replayed(recording)[name][line].message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["InferenceReady", "ResourceReady", "WorkspaceSucceeded", "New"])
CONDITIONS = st.lists(
    st.fixed_dictionaries(
        {}, optional={"type": TYPES | JSON, "status": JSON, "reason": JSON, "message": JSON}
    )
    | JSON,
    max_size=4,
)


@given(
    status=JSON | st.fixed_dictionaries({}, optional={"conditions": CONDITIONS | JSON, "state": JSON}),
    metadata=JSON,
)
def test_no_status_makes_it_stumble(status: Any, metadata: Any) -> None:
    observation = observe(MODEL, {"metadata": metadata, "status": status})

    assert observation.message
    assert observation.phase in ("Pending", "Deploying", "Running")


@pytest.mark.parametrize("spec", [{"resources": {"gpu": {"count": 1}}}, {"image": "example/i:1"}])
@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({}, 0),
        ({"targetNodeCount": 2}, 0),
        ({"conditions": [condition("InferenceReady=False/Pending: x")], "state": "Pending"}, 0),
        ({"conditions": [condition("InferenceReady=False/ContainerCrashLoopBackOff: x")]}, 0),
        ({"conditions": [condition("InferenceReady=True/Yes: up")], "state": "NotReady"}, 1),
        ({"targetNodeCount": 2, "conditions": [condition("InferenceReady=True/Yes: up")]}, 1),
    ],
)
def test_workspace_is_one_replica_on_however_many_nodes(
    spec: dict[str, Any], status: dict[str, Any], ready: int
) -> None:
    model = deployment({"model": {"id": "o/m"}, "engine": {"type": "vllm"}, **spec}, "gemma")

    observation = observe(model, {"metadata": {"name": "gemma"}, "status": status})

    assert observation.replicas == Replicas(desired=1, ready=ready, available=ready)
