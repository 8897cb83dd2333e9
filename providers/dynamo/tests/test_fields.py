"""The field table of the README, walked: what is called honoured, refused or meaningless is so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_dynamo.provider import provider
from kubefoundry_dynamo.render import render
from kubefoundry_dynamo.settings import Settings
from kubefoundry_dynamo.supports import supports
from kubefoundry_sdk._provider.contract import Rendered
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment
from support.fieldtable import Promise, Row, Sample, broken_promise, gaps, read
from support.pod_values import POD_VALUES

V1ALPHA1 = Schema(
    "nvidia.com/v1alpha1",
    frozenset(
        {"subComponentType", "globalDynamoNamespace", "gpuType", "restart", "observedGeneration", "claims"}
    ),
)
V1BETA1 = Schema("nvidia.com/v1beta1", frozenset({"v1beta1", "runtimeVersionOverride", "claims"}))
VARIANTS = {
    "v1alpha1": (V1ALPHA1, "aggregated"),
    "v1beta1": (V1BETA1, "aggregated"),
    "v1alpha1 disaggregated": (V1ALPHA1, "disaggregated"),
    "v1beta1 disaggregated": (V1BETA1, "disaggregated"),
}
DYNAMO = provider(Settings())
ROWS = read(Path(__file__).parents[1] / "README.md")

Spec = dict[str, Any]

BASES: dict[str, Spec] = {
    "aggregated": {"serving": {"mode": "aggregated"}, "resources": {"gpu": {"count": 1}}},
    "disaggregated": {
        "serving": {"mode": "disaggregated"},
        "scaling": {"prefill": {"gpu": {"count": 1}}, "decode": {"gpu": {"count": 1}}},
    },
}
MODEL = {"model": {"id": "org/model"}}
"""The least that a spec must say."""

SAMPLES: Mapping[str, tuple[Any, Any]] = {
    "model.id": ("org/one", "org/two"),
    "model.servedName": (None, "other"),
    "model.source": ("huggingface", "custom"),
    "provider.name": (None, "dynamo"),
    "provider.overrides": (
        None,
        {"routerMode": "kv", "frontend": {"replicas": 2, "resources": {"cpu": "4", "memory": "8Gi"}}},
    ),
    "engine.type": ("vllm", "sglang"),
    "engine.contextLength": (None, 8192),
    "engine.trustRemoteCode": (False, True),
    "engine.args": ({}, {"quantization": "awq"}),
    "engine.extraArgs": ([], ["--lora-modules", "a=org/a", "b=org/b"]),
    "engine.extraArgs: disaggregation-mode": ([], ["--disaggregation-mode", "prefill"]),
    "engine.args: disaggregation-mode": ({}, {"disaggregation-mode": "prefill"}),
    "scaling.replicas": (1, 0),
    "scaling.prefill.replicas: 0": (1, 0),
    "scaling.decode.replicas: 0": (1, 0),
    "resources.memory": (None, "32Gi"),
    "resources.cpu": (None, "4"),
    "resources.cpuLimit": (None, "4"),
    "image": ("example.com/engine:1.0.1", "example.com/engine:1.0.2"),
    "env": ([], [{"name": "LEVEL", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]),
    "podTemplate.metadata.labels": ({}, {"team": "a"}),
    "podTemplate.metadata.annotations": ({}, {"team": "a"}),
    "secrets.huggingFaceToken": (None, "hf-token"),
    "nodeSelector": ({}, {"pool": "gpu"}),
    "tolerations": ([], [{"operator": "Exists"}]),
    **{path: (None, value) for path, value in POD_VALUES.items()},
} | {
    f"{part}.{field}": values
    for part in ("scaling.prefill", "scaling.decode", "resources")
    for field, values in {
        "replicas": (1, 2),
        "gpu.count": (1, 4),
        "gpu.type": ("nvidia.com/gpu", "nvidia.com/mig-1g.10gb"),
        "memory": (None, "64Gi"),
    }.items()
}
"""For each field two values, the default among them where there is one."""


def with_value(spec: Mapping[str, Any], path: str, value: Any) -> Spec:
    """`spec` with `value` there; None leaves the field out."""
    name, _, rest = path.partition(".")
    changed = dict(spec)
    if rest:
        changed[name] = with_value(changed.get(name) or {}, rest, value)
    elif value is None:
        changed.pop(name, None)
    else:
        changed[name] = value
    return changed


def problems_with(schema: Schema, spec: Mapping[str, Any]) -> Sequence[str]:
    return supports(deployment(spec), schema, Settings())


def rendered_for(schema: Schema, spec: Mapping[str, Any]) -> Rendered:
    return render(deployment(spec), schema, Settings())


def samples(row: Row, mode: str, engine: str) -> list[Sample]:
    """Both ways, so that setting a default shows as well as leaving it."""
    if row.field == "serving.mode":
        other = next(name for name in BASES if name != mode)
        pair = [{**MODEL, "engine": {"type": engine}, **BASES[name]} for name in (other, mode)]
    else:
        base = {**MODEL, "engine": {"type": engine}, **BASES[mode]}
        if row.field == "model.source":
            base["image"] = "example.com/engine:1.0.1"
        pair = [with_value(base, row.leaf, value) for value in SAMPLES[row.field]]
    if row.klass == "refused":
        return [Sample(*pair)]
    return [Sample(*pair), Sample(pair[1], pair[0])]


def promises() -> Iterator[Promise]:
    """Of every honoured row, in each variant: what docs/compatibility.md asks of each release."""
    for row in ROWS:
        for variant, (_, mode) in VARIANTS.items():
            if row.klass == "honoured" and row.covers(variant):
                yield Promise(row.field, variant, DYNAMO, samples(row, mode, "vllm")[0])


def test_every_field_has_a_class_for_every_variant() -> None:
    assert gaps(ROWS, list(VARIANTS)) == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.line}-{row.field}")
@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_code_keeps_the_promise_of_each_row(row: Row, engine: str) -> None:
    for name, (schema, mode) in VARIANTS.items():
        if not row.covers(name):
            continue
        for sample in samples(row, mode, engine):
            broken = broken_promise(
                row,
                sample,
                partial(problems_with, schema),
                partial(rendered_for, schema),
            )
            assert broken is None, f"{name}: {broken}"
