"""The field table of the README, walked: what is called honoured, refused or meaningless is so."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_kuberay.probe import CLAIMS, IMAGE_VOLUMES
from kubefoundry_kuberay.provider import provider
from kubefoundry_kuberay.settings import Settings
from kubefoundry_sdk._provider.contract import Rendered
from kubefoundry_sdk._provider.reconcile.compatibility import check
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment
from support.fieldtable import Promise, Row, Sample, broken_promise, gaps, read
from support.pod_values import POD_VALUES

KUBERAY = provider(Settings())
SCHEMA = Schema("ray.io/v1", frozenset({"suspend", CLAIMS, IMAGE_VOLUMES}))
ROWS = read(Path(__file__).parents[1] / "README.md")

Spec = dict[str, Any]

ROLE = {"replicas": 2, "gpu": {"count": 1, "type": "nvidia.com/gpu"}, "memory": "64Gi"}
BASES: dict[str, Spec] = {
    "aggregated": {
        "model": {"id": "org/model"},
        "engine": {"type": "vllm"},
        "resources": {"gpu": {"count": 1, "type": "nvidia.com/gpu"}},
    },
    "disaggregated": {
        "model": {"id": "org/model"},
        "engine": {"type": "vllm"},
        "serving": {"mode": "disaggregated"},
        "scaling": {"prefill": copy.deepcopy(ROLE), "decode": copy.deepcopy(ROLE)},
    },
}
"""Each variant's least spec."""

VALUES: dict[str, Any] = {
    "model.id": "org/other",
    "model.servedName": "other",
    "model.source: huggingface": "huggingface",
    "model.source: custom": "custom",
    "provider.name": "kuberay",
    "provider.overrides": {
        "head": {"resources": {"cpu": "4", "memory": "8Gi"}, "rayStartParams": {"num-cpus": "1"}}
    },
    "engine.type: vllm": "vllm",
    "engine.type: sglang": "sglang",
    "engine.type: trtllm": "trtllm",
    "engine.type: llamacpp": "llamacpp",
    "engine.contextLength": 8192,
    "engine.trustRemoteCode: true": True,
    "engine.trustRemoteCode: false": False,
    "engine.args": {"quantization": "awq"},
    "engine.extraArgs": ["--lora-modules", "a=org/a"],
    "scaling.replicas": 3,
    "scaling.replicas: 0": 0,
    "resources.gpu.count": 4,
    "resources.gpu.count: 0": 0,
    "resources.gpu.type": "nvidia.com/mig-1g.10gb",
    "resources.memory": "32Gi",
    "resources.cpu": "8",
    "resources.cpuLimit": "8",
    "image": "rayproject/ray-llm:2.54.0-py311-cu128",
    "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
    "podTemplate.metadata.labels": {"team": "a"},
    "podTemplate.metadata.annotations": {"note": "b"},
    "secrets.huggingFaceToken": "hf-token",
    "nodeSelector": {"pool": "gpu"},
    "tolerations": [{"operator": "Exists"}],
    **POD_VALUES,
} | {
    f"scaling.{role}.{field}": value
    for role in ("prefill", "decode")
    for field, value in {
        "replicas": 3,
        "replicas: 0": 0,
        "gpu.count": 4,
        "gpu.count: 0": 0,
        "gpu.type": "nvidia.com/mig-1g.10gb",
        "memory": "128Gi",
    }.items()
}
"""The value that the changed spec has; the base has the default or that of `BASES`."""


def sample(row: Row, variant: str) -> Sample:
    base = BASES[variant]
    if row.field == "serving.mode":
        other = {"aggregated": "disaggregated", "disaggregated": "aggregated"}[variant]
        return Sample(base, BASES[other])
    changed = copy.deepcopy(base)
    *path, last = row.leaf.split(".")
    part = changed
    for name in path:
        part = part.setdefault(name, {})
    part[last] = VALUES[row.field]
    return Sample(base, changed)


def supports(spec: Mapping[str, Any]) -> tuple[str, ...]:
    return check(KUBERAY, deployment(spec), SCHEMA).problems


def render(spec: Mapping[str, Any]) -> Rendered:
    return KUBERAY.render(deployment(spec), SCHEMA)


def promises() -> Iterator[Promise]:
    """Of every honoured row, in each variant: what docs/compatibility.md asks of each release."""
    for row in ROWS:
        for variant in BASES:
            if row.klass == "honoured" and row.covers(variant):
                yield Promise(row.field, variant, KUBERAY, sample(row, variant))


def test_every_field_has_a_class_in_both_modes() -> None:
    assert gaps(ROWS, tuple(BASES)) == []


@pytest.mark.parametrize("variant", BASES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.line}-{row.field}")
def test_code_keeps_the_promise_of_each_row(row: Row, variant: str) -> None:
    if not row.covers(variant):
        return
    assert broken_promise(row, sample(row, variant), supports, render) is None


@pytest.mark.parametrize("variant", BASES)
def test_least_spec_of_a_variant_is_supported(variant: str) -> None:
    assert supports(BASES[variant]) == ()
