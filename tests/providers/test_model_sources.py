"""Weights in an image and in object storage, with each provider, engine and mode, on every stored CRD."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from kubefoundry_cli.providers import named
from kubefoundry_sdk._provider.reconcile.compatibility import check
from kubefoundry_sdk.testing.generated import deployment
from support.upstream import probed_schemas

GPU: Final = {"resources": {"gpu": {"count": 1}, "memory": "8Gi"}}
PARTS: Final = {"replicas": 1, "gpu": {"count": 1}, "memory": "8Gi"}
SPLIT: Final = {"serving": {"mode": "disaggregated"}, "scaling": {"prefill": PARTS, "decode": PARTS}}
IMAGE: Final = {"image": "example.com/engine:1.0.0"}
WEIGHTS: Final = "example.com/models/llama:1"
BUCKET: Final = "s3://models/llama"

CASES: Final = [
    *(
        ("direct", {"engine": {"type": engine}, **GPU}, 1)
        for engine in ("vllm", "sglang", "trtllm", "llamacpp")
    ),
    ("kaito", {"engine": {"type": "vllm"}, **GPU, **IMAGE}, 1),
    ("kaito", {"engine": {"type": "llamacpp"}, **IMAGE}, 1),
    ("kuberay", {"engine": {"type": "vllm"}, **GPU}, 1),
    ("kuberay", {"engine": {"type": "vllm"}, **SPLIT}, 2),
    *(("dynamo", {"engine": {"type": engine}, **GPU}, 1) for engine in ("vllm", "sglang", "trtllm")),
    *(("dynamo", {"engine": {"type": engine}, **SPLIT}, 2) for engine in ("vllm", "sglang", "trtllm")),
]
"""Provider, spec, and number of pod templates with an engine."""

PURPOSES: Final = (
    {"purpose": "modelCache"},
    {"purpose": "modelCache", "mountPath": "/m", "subPath": "models"},
    {"purpose": "custom", "mountPath": "/m", "subPath": "models"},
)


def answers(name: str, spec: dict[str, Any], storage: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the refusal and the rendered objects (JSON) for each schema, one of them empty.

    Schemas for which the provider refuses the model without storage are left out.
    """
    build = named(name).from_flags
    assert build is not None
    provider = build({})
    plain, asked = (
        deployment({**spec, "model": {"id": "org/llama", "storage": stored}}) for stored in ({}, storage)
    )
    usable = [schema for schema in probed_schemas(provider) if not check(provider, plain, schema).problems]
    assert usable
    for schema in usable:
        problems = check(provider, asked, schema).problems
        yield "; ".join(problems), "" if problems else json.dumps(provider.render(asked, schema).main)


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize(("name", "spec", "engines"), CASES)
def test_image_is_in_each_pod_with_an_engine_and_no_other(
    name: str, spec: dict[str, Any], engines: int, purpose: dict[str, Any]
) -> None:
    volume = {"name": "weights", "image": {"reference": WEIGHTS}, **purpose}

    for refusal, rendered in answers(name, spec, {"volumes": [volume]}):
        if refusal:
            expected = "has no place for model.storage" if name == "kuberay" else "KAITO decodes the pods"
            assert name in ("kuberay", "kaito") and expected in refusal
            continue
        assert name != "kaito"
        assert rendered.count(json.dumps({"name": "weights", "image": {"reference": WEIGHTS}})) == engines
        assert rendered.count(WEIGHTS) == engines
        assert rendered.count('"subPath": "models"') == (engines if "subPath" in purpose else 0)
        offline = rendered.count("HF_HUB_OFFLINE") + rendered.count("LLAMA_ARG_OFFLINE")
        assert offline == (engines if purpose["purpose"] == "modelCache" else 0)


@pytest.mark.parametrize(("name", "spec", "engines"), CASES)
def test_object_storage_replaces_the_hub_or_is_refused(name: str, spec: dict[str, Any], engines: int) -> None:
    honours = name != "dynamo" and spec["engine"]["type"] in ("vllm", "sglang")

    for refusal, rendered in answers(name, spec, {"uri": BUCKET}):
        assert bool(refusal) != honours
        if refusal:
            assert "model.storage.uri" in refusal
            continue
        assert rendered.count(BUCKET) == engines
        assert rendered.count("runai_streamer") == engines
        assert "org/llama" not in rendered
        assert "llama" in rendered.replace(BUCKET, "")


def test_stated_loader_is_kept() -> None:
    stated = {"engine": {"type": "vllm", "args": {"load-format": "runai_streamer_sharded"}}, **GPU}

    for name in ("direct", "kuberay"):
        for refusal, rendered in answers(name, stated, {"uri": BUCKET}):
            assert refusal == ""
            assert rendered.count("runai_streamer") == rendered.count("runai_streamer_sharded") == 1
