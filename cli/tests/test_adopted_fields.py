"""Fields that an import finds although no value of the live object is theirs alone."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_cli import adoption
from kubefoundry_cli.providers import installed
from support.deployments import GPU
from support.left_behind import left_behind, schema_of


@pytest.mark.parametrize("name", ["direct", "kaito", "kuberay"])
@pytest.mark.parametrize("served", [None, "llama"])
def test_import_finds_model_in_object_storage(name: str, served: str | None) -> None:
    provider = installed()[name]
    schema = schema_of(provider)
    model = {**GPU["model"], "storage": {"uri": "s3://models/llama/"}}
    model |= {"servedName": served} if served else {}
    spec = {**GPU, "model": model, "image": "example.com/vllm:2.55.0", "provider": {"name": name}}
    live, helpers = left_behind(provider, schema, spec)

    found = adoption.adoption(provider, schema, live, helpers)

    assert found.fits, found.changes
    assert found.obj["spec"]["model"]["storage"] == {"uri": "s3://models/llama/"}


@pytest.mark.parametrize("replicas", [0, 2])
def test_import_keeps_replicas_beside_arguments(replicas: int) -> None:
    provider = installed()["direct"]
    schema = schema_of(provider)
    spec: dict[str, Any] = {
        "model": GPU["model"],
        "engine": {"type": "vllm", "contextLength": 1, "args": {"gpu-memory-utilization": "0.5"}},
        "resources": {"gpu": {"count": 2}},
        "scaling": {"replicas": replicas},
        "provider": {"name": "direct"},
    }
    live, helpers = left_behind(provider, schema, spec)

    found = adoption.adoption(provider, schema, live, helpers)

    assert found.obj["spec"].get("scaling") == {"replicas": replicas}
