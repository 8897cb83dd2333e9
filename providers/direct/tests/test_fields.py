"""The README's field table, compared with what the provider does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_direct.provider import provider
from kubefoundry_direct.settings import Settings
from kubefoundry_sdk._provider.reconcile.compatibility import check
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment
from support import fieldtable
from support.fieldtable import Row, Sample
from support.pod_values import POD_VALUES, pod_template

Spec = dict[str, Any]

ROWS = fieldtable.read(Path(__file__).resolve().parents[1] / "README.md")
SCHEMA = Schema("apps/v1")
DIRECT = provider(Settings())

ENGINES = ("vllm", "sglang", "trtllm", "llamacpp")
GPU = {"gpu": {"count": 1}}
VARIANTS: dict[str, Spec] = {
    engine: {
        "model": {"id": "org/model"},
        "engine": {"type": engine},
        **({} if engine == "llamacpp" else {"resources": GPU}),
    }
    for engine in ENGINES
}


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> Spec:
    result = dict(base)
    for key, value in change.items():
        before = result.get(key)
        result[key] = merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return result


def overriding(**overrides: Any) -> Spec:
    return {"provider": {"name": "direct", "overrides": overrides}}


ROLE = {"replicas": 2, "gpu": {"count": 3, "type": "amd.com/gpu"}, "memory": "9Gi"}

CHANGES: dict[str, Spec] = {
    "model.id": {"model": {"id": "org/other"}},
    "model.servedName": {"model": {"servedName": "mine"}},
    "model.source": {"model": {"source": "custom"}, "image": "example/engine:1"},
    "provider.name": {"provider": {"name": "direct"}},
    "provider.overrides: rollout": overriding(rollout="replace"),
    "provider.overrides: cacheClaim": overriding(cacheClaim="weights"),
    "provider.overrides: sharedMemory": overriding(sharedMemory="8Gi"),
    "provider.overrides: drainSeconds": overriding(drainSeconds=300),
    "provider.overrides: startupSeconds": overriding(startupSeconds=7200),
    "provider.overrides: command": overriding(command=["/bin/server"]),
    "provider.overrides: runAsUser": overriding(runAsUser=0),
    "provider.overrides: imagePullSecrets": overriding(imagePullSecrets=["registry"]),
    "provider.overrides: runtimeClassName": overriding(runtimeClassName="nvidia"),
    "engine.contextLength": {"engine": {"contextLength": 8192}},
    "engine.trustRemoteCode": {"engine": {"trustRemoteCode": True}},
    "engine.args": {"engine": {"args": {"log-level": "debug"}}},
    "engine.extraArgs": {"engine": {"extraArgs": ["--lora-modules", "a=org/a", "b=org/b"]}},
    "engine.extraArgs: port": {"engine": {"extraArgs": ["--port=80"]}},
    "engine.args: a key": {"engine": {"args": {"kv_cache_config": '{"dtype":"fp8"}'}}},
    "engine.args: port": {"engine": {"args": {"port": "80"}}},
    "engine.args: ssl-certfile": {"engine": {"args": {"ssl-certfile": "/tls.crt"}}},
    "engine.args: api-prefix": {"engine": {"args": {"api-prefix": "/v2"}}},
    "serving.mode: disaggregated": {"serving": {"mode": "disaggregated"}},
    "scaling.replicas": {"scaling": {"replicas": 0}},
    **{
        f"scaling.{role}.{leaf}": {"scaling": {role: ROLE}}
        for role in ("prefill", "decode")
        for leaf in ("replicas", "gpu.count", "gpu.type", "memory")
    },
    "resources.gpu.count": {"resources": {"gpu": {"count": 2}}},
    "resources.gpu.type": {
        "resources": {"gpu": {"count": 1, "type": "amd.com/gpu"}},
        "image": "example/engine:1",
    },
    "resources.gpu.type: without image": {"resources": {"gpu": {"count": 1, "type": "amd.com/gpu"}}},
    "resources.memory": {"resources": {"memory": "16Gi"}},
    "resources.cpu": {"resources": {"cpu": "8"}},
    "resources.cpuLimit": {"resources": {"cpuLimit": "8"}},
    "image": {"image": "example/other:2"},
    "env": {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
    "podTemplate.metadata.labels": {"podTemplate": {"metadata": {"labels": {"team": "a"}}}},
    "podTemplate.metadata.annotations": {"podTemplate": {"metadata": {"annotations": {"note": "b"}}}},
    "secrets.huggingFaceToken": {"secrets": {"huggingFaceToken": "hf"}},
    "nodeSelector": {"nodeSelector": {"pool": "gpu"}},
    "tolerations": {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
    **{path: pod_template(path) for path in POD_VALUES},
}
"""What makes the changed spec of a row out of its variant's base."""


def sample(row: Row, variant: str) -> Sample:
    base = VARIANTS[variant]
    if row.field == "engine.type":
        other = "sglang" if variant == "vllm" else "vllm"
        return Sample(
            merged(base, {"engine": {"type": other}, "resources": GPU}), merged(base, {"resources": GPU})
        )
    return Sample(base, merged(base, CHANGES[row.field]))


def test_every_field_has_a_class_for_every_engine() -> None:
    assert fieldtable.gaps(ROWS, ENGINES) == []


@pytest.mark.parametrize(
    ("row", "variant"),
    [
        pytest.param(row, variant, id=f"{row.field}-{variant}")
        for row in ROWS
        for variant in ENGINES
        if row.covers(variant)
    ],
)
def test_provider_does_what_the_table_says(row: Row, variant: str) -> None:
    assert (
        fieldtable.broken_promise(
            row,
            sample(row, variant),
            lambda spec: check(DIRECT, deployment(spec), SCHEMA).problems,
            lambda spec: DIRECT.render(deployment(spec), SCHEMA),
        )
        is None
    )
