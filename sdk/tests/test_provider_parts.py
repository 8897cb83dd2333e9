"""What every provider writes into a container, and the fields that it refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from kubefoundry_sdk.engine import argv, literal
from kubefoundry_sdk.pod import aggregated_resources, container_resources, secret_env_from
from kubefoundry_sdk.spec import GpuSpec, refused_fields
from kubefoundry_sdk.testing import deployment, specs


def expanded(entry: str, variables: dict[str, str]) -> str:
    """What the kubelet makes of an entry of `args` (Kubernetes, third_party/forked/golang/expansion/expand.go)."""
    text, at = "", 0
    while at < len(entry):
        if entry[at] != "$" or at + 1 == len(entry):
            text, at = text + entry[at], at + 1
        elif entry[at + 1] == "$":
            text, at = text + "$", at + 2
        elif entry[at + 1] == "(" and (end := entry.find(")", at + 2)) >= 0:
            name = entry[at + 2 : end]
            text, at = text + variables.get(name, f"$({name})"), end + 1
        else:
            text, at = text + entry[at : at + 2], at + 2
    return text


@given(st.text(alphabet="$()Xa{} ", max_size=12))
def test_literal_entry_is_not_expanded(entry: str) -> None:
    assert expanded(literal(entry), {"X": "expanded", "": "nothing", "a": "more"}) == entry


@given(spec=specs(engines=["vllm"], modes=["aggregated"], image=None))
def test_engine_args_arrive_as_they_are(spec: dict[str, Any]) -> None:
    stated = deployment(spec).spec.engine.args

    line = [expanded(entry, {"HOME": "/root", "X": "y"}) for entry in argv([], stated)]

    for flag, value in stated.items():
        assert f"--{flag}" in line or f"--no-{flag}" in line
        assert value in (*line, "", "true", "false")


def test_resources_are_requests_and_limits() -> None:
    assert container_resources(GpuSpec(count=2, type="amd.com/gpu"), "8Gi", 4) == {
        "requests": {"memory": "8Gi", "cpu": 4},
        "limits": {"memory": "8Gi", "amd.com/gpu": "2"},
    }
    assert container_resources(GpuSpec()) == container_resources() == {}


def test_those_of_a_spec_are_texts() -> None:
    spec = deployment({"resources": {"cpu": 4, "memory": 1024}, "secrets": {"huggingFaceToken": "hf"}}).spec

    assert aggregated_resources(spec) == {
        "requests": {"cpu": "4", "memory": "1024"},
        "limits": {"memory": "1024"},
    }
    assert secret_env_from(spec) == [{"secretRef": {"name": "hf"}}]
    assert secret_env_from(deployment({}).spec) == []


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        ({}, []),
        ({"env": [{"name": "A", "value": "b"}]}, ["env"]),
        ({"podTemplate": {"metadata": {"labels": {"a": "b"}}}}, ["podTemplate.metadata.labels"]),
        ({"resources": {"gpu": {"count": 0}}}, []),
        ({"resources": {"gpu": {"count": 1, "type": "amd.com/gpu"}}}, ["resources.gpu.type"]),
        ({"engine": {"trustRemoteCode": True}}, ["engine.trustRemoteCode"]),
        ({"engine": {"trustRemoteCode": False}, "env": [], "nodeSelector": {}}, []),
        ({"scaling": {"replicas": 0}}, ["scaling.replicas"]),
        ({"provider": {"name": "x", "overrides": {"a": 1}}}, ["provider.overrides"]),
    ],
)
def test_stated_fields_are_refused(spec: dict[str, Any], refused: list[str]) -> None:
    fields = (
        "env",
        "podTemplate.metadata.labels",
        "resources.gpu.type",
        "engine.trustRemoteCode",
        "nodeSelector",
        "scaling.replicas",
        "provider.overrides",
        "secrets.huggingFaceToken",
    )

    reported = refused_fields(deployment(spec).spec, dict.fromkeys(fields, "no place for {field}"))

    assert reported == [f"no place for {field}" for field in refused]


@pytest.mark.parametrize("path", ["resorces.cpu", "env.name", "resources.gpus.count"])
def test_refused_field_that_does_not_exist_is_an_error(path: str) -> None:
    with pytest.raises(LookupError, match=re.escape(path)):
        refused_fields(deployment({"resources": {"gpu": {"count": 1}}}).spec, {path: "x"})


class Overrides(BaseModel):
    size: int = 3


def test_overrides_have_the_providers_form() -> None:
    assert deployment({}).spec.overrides_as(Overrides).size == 3
    assert deployment({"provider": {"name": "x"}}).spec.overrides_as(Overrides).size == 3
    stated = {"provider": {"name": "x", "overrides": {"size": 4, "unknown": True}}}
    assert deployment(stated).spec.overrides_as(Overrides).size == 4
    with pytest.raises(ValidationError):
        deployment({"provider": {"name": "x", "overrides": {"size": "much"}}}).spec.overrides_as(Overrides)


def test_resources_of_replica_are_divided_by_its_nodes() -> None:
    spec = deployment({"resources": {"gpu": {"count": 16}, "memory": "1Ti", "cpu": 7}}).spec

    assert aggregated_resources(spec, nodes=2) == {
        "requests": {"memory": "512Gi", "cpu": "3500m"},
        "limits": {"memory": "512Gi", "nvidia.com/gpu": "8"},
    }


def test_gpus_that_nodes_cannot_share_are_rejected() -> None:
    spec = deployment({"resources": {"gpu": {"count": 3}}}).spec

    with pytest.raises(ValueError, match="3 GPUs cannot be divided by 2 nodes"):
        aggregated_resources(spec, nodes=2)
