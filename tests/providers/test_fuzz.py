"""Observe and render corrupt input: every result is valid by the CRD, and nothing raises."""

from __future__ import annotations

import functools
import json
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubefoundry_conformance.nonsense import spoiled
from kubefoundry_direct.provider import provider as direct
from kubefoundry_direct.settings import Settings as DirectSettings
from kubefoundry_dynamo.provider import provider as dynamo
from kubefoundry_dynamo.settings import Settings as DynamoSettings
from kubefoundry_kaito.provider import provider as kaito
from kubefoundry_kaito.settings import Settings as KaitoSettings
from kubefoundry_kuberay.provider import provider as kuberay
from kubefoundry_kuberay.settings import Settings as KubeRaySettings
from kubefoundry_sdk._api import structure
from kubefoundry_sdk._api.schema import structural
from kubefoundry_sdk._api.status import ModelDeploymentStatus
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.contract import Observation, Provider
from kubefoundry_sdk._provider.reconcile import compatibility
from kubefoundry_sdk._provider.reconcile.report import Report
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment
from support.sampled_cases import examples

PROVIDERS: Mapping[str, Provider] = {
    "kaito": kaito(KaitoSettings()),
    "dynamo": dynamo(DynamoSettings()),
    "kuberay": kuberay(KubeRaySettings()),
    "direct": direct(DirectSettings()),
}
SCHEMAS = {
    "kaito": Schema("kaito.sh/v1beta1", frozenset({"inference.config", "status.state"})),
    "dynamo": Schema("nvidia.com/v1beta1", frozenset({"v1beta1", "runtimeVersionOverride"})),
    "kuberay": Schema("ray.io/v1", frozenset({"suspend"})),
    "direct": Schema("apps/v1"),
}
DEPLOYMENT = deployment(
    {
        "model": {"id": "org/m"},
        "engine": {"type": "vllm", "trustRemoteCode": True},
        "resources": {"gpu": {"count": 1}},
        "scaling": {"replicas": 1},
    }
)
GENERATION = {"name": "m", "namespace": "n", "uid": "u", "generation": 3}
CONDITIONS = [
    {
        "type": type_,
        "status": status,
        "reason": "ContainerCrashLoopBackOff",
        "message": "words",
        "observedGeneration": 2,
        "lastTransitionTime": "2026-11-22T00:00:00Z",
    }
    for type_, status in (("Ready", "True"), ("InferenceReady", "False"), ("UpgradeInProgress", "True"))
]
APPLICATION = {
    "llm": {
        "status": "DEPLOY_FAILED",
        "message": "no",
        "serveDeploymentStatuses": {"LLMServer:m": {"status": "UPDATING", "message": "x"}},
    }
}
SOUND: Mapping[str, dict[str, Any]] = {
    "kaito": {"conditions": CONDITIONS, "state": "NotReady", "targetNodeCount": 1},
    "dynamo": {
        "state": "failed",
        "observedGeneration": 2,
        "conditions": CONDITIONS,
        "components": {
            "VllmWorker": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1},
            "Frontend": {"replicas": 1, "readyReplicas": 1},
        },
    },
    "kuberay": {
        "observedGeneration": 2,
        "serviceStatus": "Running",
        "numServeEndpoints": 2,
        "conditions": CONDITIONS,
        "activeServiceStatus": {
            "rayClusterName": "m-x",
            "applicationStatuses": APPLICATION,
            "rayClusterStatus": {"readyWorkerReplicas": 1, "conditions": CONDITIONS},
        },
        "pendingServiceStatus": {"rayClusterName": "m-y", "applicationStatuses": APPLICATION},
    },
    "direct": {
        "observedGeneration": 2,
        "replicas": 3,
        "updatedReplicas": 1,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "conditions": [
            {
                "type": "Progressing",
                "status": "False",
                "reason": "ProgressDeadlineExceeded",
                "message": "late",
            },
            {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"},
        ],
    },
}


SEEDS = st.integers(0, 2**32)
LONGEST_ARG = 16384
"""Limit of the CRD, in characters."""
ARGS = {
    "tp": "2",
    "pipeline-parallel-size": "2",
    "no-x": "",
    "kv-transfer-config": "{}",
    "seed": "1",
    "api_key": "x",
    "temperature": "1e400",
    "json": "[" * 4096,
    "trust_remote_code": "",
    "kv_cache_config": "{}",
}
OVERRIDES = {
    "runtimeVersion": "1.0.0",
    "routerMode": "kv",
    "frontend": {"replicas": 1, "resources": {"cpu": "1", "memory": "1Gi"}},
    "head": {
        "resources": {"cpu": 1, "memory": "1Gi"},
        "rayStartParams": {"a": "b"},
        "imagePullSecrets": ["s"],
    },
    "llamacppServer": "aikit",
    "preferredNodes": ["n"],
    "rollout": "surge",
    "cacheClaim": "weights",
    "sharedMemory": "8Gi",
    "drainSeconds": 5,
    "command": ["server"],
    "runAsUser": 7,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVIDERS)
@settings(max_examples=examples(400))
@given(seed=SEEDS)
def test_every_status_is_observed(name: str, seed: int) -> None:
    managed = [{"manager": "kuberay-provider", "time": "x"}]
    live = {
        "apiVersion": "x/v1",
        "kind": "X",
        "metadata": {**GENERATION, "managedFields": spoiled(managed, seed)},
        "status": spoiled(SOUND[name], seed),
    }
    provider = PROVIDERS[name]

    observation = provider.observe(DEPLOYMENT, live)

    assert _schema_problems(provider, observation, live) == []
    provider.must_recreate(live)
    assert provider.pods is not None
    assert all(isinstance(value, str) for value in (*provider.pods.values(live), *provider.pods.makers(live)))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "llamacpp"])
@pytest.mark.parametrize("name", PROVIDERS)
@settings(max_examples=examples(200))
@given(seed=SEEDS)
def test_every_spec_is_rendered_or_refused(name: str, engine: str, seed: int) -> None:
    """Render specs that the CRD accepts: overrides may hold any value, args any text."""
    args = {
        key: value
        for number, (key, item) in enumerate(ARGS.items())
        if seed >> number & 1
        and isinstance(value := spoiled(item, seed + len(key)), str)
        and len(value) <= LONGEST_ARG
    }
    overrides = spoiled(OVERRIDES, seed)
    spec = {
        "model": {"id": "org/m"},
        "engine": {"type": engine, "args": args, "trustRemoteCode": True},
        "resources": {"gpu": {"count": 4}},
        "provider": {"name": name, "overrides": overrides if isinstance(overrides, dict) else {}},
    }
    model = deployment({**spec, "image": "x:1"} if seed % 2 else spec)
    provider = PROVIDERS[name]

    result = compatibility.check(provider, model, SCHEMAS[name])

    assert all(result.problems)
    if not result.problems:
        rendered = provider.render(model, SCHEMAS[name])
        json.dumps([rendered.main, *rendered.helpers], allow_nan=False)


MOST = 2**31 - 1
SIZES = ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size")
NUMBERS: Mapping[str, Mapping[str, Any]] = {
    "replicas": {"scaling": {"replicas": MOST}},
    "GPUs": {"resources": {"gpu": {"count": MOST}}},
    "context length": {"engine": {"contextLength": MOST}},
    **{
        f"{size} {value}": {"engine": {"args": {size: value}}}
        for size in SIZES
        for value in ("999999", "1" * 9)
    },
    **{
        f"{count} GPUs of each role": {
            "scaling": {role: {"gpu": {"count": count}} for role in ("prefill", "decode")}
        }
        for count in (1024, 10_000, MOST)
    },
    "replicas of each role": {
        "scaling": {role: {"replicas": MOST, "gpu": {"count": 1}} for role in ("prefill", "decode")}
    },
    "all of each role": {
        "scaling": {role: {"replicas": MOST, "gpu": {"count": MOST}} for role in ("prefill", "decode")}
    },
}
"""The largest numbers that the CRD takes, or that pass for a size."""


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "llamacpp"])
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("name", PROVIDERS)
def test_largest_numbers_take_little_memory(name: str, number: str, engine: str) -> None:
    """A few bytes of a spec must not become a list of as many items, in the process that serves all tenants."""
    change = NUMBERS[number]
    roles = "role" in number
    spec = {
        "model": {"id": "org/m"},
        "provider": {"name": name},
        "serving": {"mode": "disaggregated" if roles else "aggregated"},
        **({} if roles else {"resources": {"gpu": {"count": 1}}}),
        **change,
        "engine": {"type": engine, "trustRemoteCode": True, **change.get("engine", {})},
    }
    model = deployment(spec)
    provider = PROVIDERS[name]
    tracemalloc.start()

    result = compatibility.check(provider, model, SCHEMAS[name])
    if not result.problems:
        rendered = results.render(provider, model, SCHEMAS[name])
        results.observe(
            provider, model, {**rendered.main, "metadata": {**rendered.main["metadata"], **GENERATION}}
        )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 4 * 2**20


def _schema_problems(provider: Provider, observation: Observation, live: dict[str, Any]) -> list[str]:
    """Return the problems of the status that an observation yields, by the CRD."""
    report = Report(generation=3, compatible="c", created="c", observation=observation, live=live)
    status = report.status(provider)
    for item in status["conditions"]:
        item["lastTransitionTime"] = "2026-11-22T00:00:00Z"
    return [str(problem) for problem in structure.problems(status, _schema(), "status")]


_schema: Callable[[], Any] = functools.cache(lambda: structural(ModelDeploymentStatus))
