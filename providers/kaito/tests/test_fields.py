"""The README's field table, compared with what the provider does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_kaito.probe import ACCESS_SECRET, ANY_MODEL, ENGINE_CONFIG, INSTANCE_TYPE_DEFAULT
from kubefoundry_kaito.provider import provider
from kubefoundry_kaito.settings import Settings
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.reconcile.compatibility import check
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment
from support import fieldtable
from support.fieldtable import Promise, Row, Sample
from support.pod_values import POD_VALUES, pod_template

Spec = dict[str, Any]

ROWS = fieldtable.read(Path(__file__).resolve().parents[1] / "README.md")

KAITO_0_12 = Schema("kaito.sh/v1beta1", frozenset({ENGINE_CONFIG, ACCESS_SECRET, ANY_MODEL}))
KAITO_0_4_4 = Schema("kaito.sh/v1alpha1", frozenset({ENGINE_CONFIG, INSTANCE_TYPE_DEFAULT}))

GPU = {"gpu": {"count": 1}}
LLAMA_SERVER = {"name": "kaito", "overrides": {"llamacppServer": "llama-server"}}
BY_NAME = {"name": "kaito", "overrides": {"preferredNodes": ["node-a"]}}


@dataclass(frozen=True)
class Variant:
    schema: Schema
    base: Spec


VARIANTS = {
    "preset": Variant(
        KAITO_0_12, {"model": {"id": "microsoft/phi-4"}, "engine": {"type": "vllm"}, "resources": GPU}
    ),
    "preset-v1alpha1": Variant(
        KAITO_0_4_4,
        {
            "model": {"id": "microsoft/phi-4"},
            "engine": {"type": "vllm"},
            "resources": GPU,
            "provider": BY_NAME,
        },
    ),
    "vllm": Variant(
        KAITO_0_12,
        {
            "model": {"id": "org/model"},
            "engine": {"type": "vllm"},
            "resources": GPU,
            "image": "example/vllm:1",
        },
    ),
    "aikit": Variant(
        KAITO_0_12,
        {"model": {"id": "org/model-gguf"}, "engine": {"type": "llamacpp"}, "image": "example/aikit:1"},
    ),
    "llama-server": Variant(
        KAITO_0_12,
        {
            "model": {"id": "org/model-gguf"},
            "engine": {"type": "llamacpp"},
            "image": "example/llama-server:1",
            "provider": LLAMA_SERVER,
        },
    ),
}


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> Spec:
    result = dict(base)
    for key, value in change.items():
        before = result.get(key)
        result[key] = merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return result


def overriding(**overrides: Any) -> Spec:
    return {"provider": {"name": "kaito", "overrides": overrides}}


ROLE = {"replicas": 2, "gpu": {"count": 3, "type": "amd.com/gpu"}, "memory": "9Gi"}

CHANGES: dict[str, Spec] = {
    "model.id": {"model": {"id": "microsoft/Phi-4-mini-instruct"}},
    "model.id: no built-in preset": {"model": {"id": "org/any"}, "engine": {"trustRemoteCode": True}},
    "model.servedName": {"model": {"servedName": "mine"}},
    "model.source": {"model": {"source": "custom"}},
    "model.source: custom": {"model": {"source": "custom"}},
    "provider.name": {"provider": {"name": "kaito"}},
    "provider.overrides: instanceType, mode auto": overriding(instanceType="big"),
    "provider.overrides: instanceType, mode byo": overriding(instanceType="big"),
    "provider.overrides: preferredNodes": overriding(preferredNodes=["node-b"]),
    "engine.type": {},
    "engine.type: sglang": {"engine": {"type": "sglang"}, "resources": GPU},
    "engine.type: trtllm": {"engine": {"type": "trtllm"}, "resources": GPU},
    "engine.contextLength": {"engine": {"contextLength": 8192}},
    "engine.trustRemoteCode": {"engine": {"trustRemoteCode": True}},
    "engine.trustRemoteCode: false, any model": {"model": {"id": "org/any"}},
    "engine.args": {"engine": {"args": {"gpu-memory-utilization": "0.9"}}},
    "engine.extraArgs": {"engine": {"extraArgs": ["--lora-modules", "a=org/a", "b=org/b"]}},
    "engine.extraArgs: port": {"engine": {"extraArgs": ["--port", "8000"]}},
    "engine.extraArgs: address": {"engine": {"extraArgs": ["--address", ":8080"]}},
    "engine.args: a switch": {"engine": {"args": {"enforce-eager": "true"}}},
    "engine.args: port": {"engine": {"args": {"port": "8000"}}},
    "engine.args: address": {"engine": {"args": {"address": ":8080"}}},
    "serving.mode: disaggregated": {"serving": {"mode": "disaggregated"}},
    "scaling.replicas: 0": {"scaling": {"replicas": 0}},
    "scaling.replicas: 1": {"scaling": {"replicas": 1}},
    "scaling.replicas: 2": {"scaling": {"replicas": 2}},
    "scaling.prefill.replicas": {"scaling": {"prefill": ROLE}},
    "scaling.prefill.gpu.count": {"scaling": {"prefill": ROLE}},
    "scaling.prefill.gpu.type": {"scaling": {"prefill": ROLE}},
    "scaling.prefill.memory": {"scaling": {"prefill": ROLE}},
    "scaling.decode.replicas": {"scaling": {"decode": ROLE}},
    "scaling.decode.gpu.count": {"scaling": {"decode": ROLE}},
    "scaling.decode.gpu.type": {"scaling": {"decode": ROLE}},
    "scaling.decode.memory": {"scaling": {"decode": ROLE}},
    "resources.gpu.count": {"resources": {"gpu": {"count": 2}}},
    "resources.gpu.type": {"resources": {"gpu": {"count": 1, "type": "amd.com/gpu"}}},
    "resources.memory": {"resources": {"memory": "16Gi"}},
    "resources.cpu": {"resources": {"cpu": "8"}},
    "resources.cpuLimit": {"resources": {"cpuLimit": "8"}},
    "image": {"image": "example/other:2"},
    "image: left out": {"image": None},
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
    base = VARIANTS[variant].base
    if row.field == "provider.overrides: llamacppServer":
        other = "aikit" if variant == "llama-server" else "llama-server"
        return Sample(base, merged(base, overriding(llamacppServer=other)))
    if row.field == "engine.type":
        # the other engine, for which the settings of that test have an image
        other_engine = {"type": "llamacpp" if base["engine"]["type"] == "vllm" else "vllm"}
        return Sample(
            merged(base, {"engine": other_engine, "resources": GPU}), merged(base, {"resources": GPU})
        )
    return Sample(base, merged(base, CHANGES[row.field]))


def provider_of(row: Row) -> Provider:
    if row.field.endswith("mode auto"):
        return provider(Settings(provisioning="auto", cpu_instance_type="small", gpu_instance_type="medium"))
    if row.field == "engine.type":
        return provider(Settings(images={"llamacpp": "example/llamacpp:1"}))
    return provider(Settings())


def promises() -> Iterator[Promise]:
    """Of every honoured row, in each variant: what docs/compatibility.md asks of each release."""
    for row in ROWS:
        for variant in VARIANTS:
            if row.klass == "honoured" and row.covers(variant):
                yield Promise(row.field, variant, provider_of(row), sample(row, variant))


def test_every_field_has_a_class_in_every_variant() -> None:
    assert fieldtable.gaps(ROWS, list(VARIANTS)) == []


@pytest.mark.parametrize(
    ("row", "variant"),
    [
        pytest.param(row, variant, id=f"{row.field}-{variant}")
        for row in ROWS
        for variant in VARIANTS
        if row.covers(variant)
    ],
)
def test_provider_does_what_the_table_says(row: Row, variant: str) -> None:
    subject = provider_of(row)
    schema = VARIANTS[variant].schema

    broken = fieldtable.broken_promise(
        row,
        sample(row, variant),
        supports=lambda spec: check(subject, deployment(spec), schema).problems,
        render=lambda spec: subject.render(deployment(spec), schema),
    )

    assert broken is None


@pytest.mark.parametrize("variant", VARIANTS)
def test_base_of_every_variant_is_accepted(variant: str) -> None:
    """Else a refused row could be refused for another reason."""
    compatibility = check(provider(Settings()), deployment(VARIANTS[variant].base), VARIANTS[variant].schema)

    assert compatibility.problems == ()
    assert compatibility.warning is None
