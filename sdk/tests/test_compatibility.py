"""Specs that a provider's capabilities rule out (contract §2), and the messages about overrides."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._provider.contract import Capabilities, Deployment, Provider
from kubefoundry_sdk._provider.reconcile import compatibility, overrides
from kubefoundry_sdk._provider.upstream_kind import Schema, UpstreamKind


def never(*arguments: object) -> Any:
    raise AssertionError("compatibility asks for nothing but `supports`")


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")
    replicas: int = 1


class Overrides(BaseModel):
    model_config = ConfigDict(extra="forbid")
    frontend: Part | None = None
    mode: str = ""


def provider(title: str, *engines: str, modes: tuple[str, ...], cpu: bool) -> Provider:
    return Provider(
        name=title.lower(),
        title=title,
        version="0.1.0",
        documentation="",
        capabilities=Capabilities(engines, modes, cpu, True),
        upstream=UpstreamKind("example.com", "engines", "Engine"),
        probe=never,
        supports=lambda deployment, schema: ("the provider refuses it",) if schema is not None else (),
        render=never,
        observe=never,
        overrides=Overrides,
    )


BOTH = ("aggregated", "disaggregated")
KAITO = provider("KAITO", "vllm", "llamacpp", modes=("aggregated",), cpu=True)
DYNAMO = provider("Dynamo", "vllm", "sglang", "trtllm", modes=BOTH, cpu=False)
KUBERAY = provider("KubeRay", "vllm", modes=BOTH, cpu=False)


def deployment(
    engine: str = "vllm", mode: str = "aggregated", gpus: int = 1, given: Any = None
) -> Deployment:
    role = {"gpu": {"count": 1}, "memory": "1Gi"}
    spec: dict[str, Any] = {"model": {"id": "org/m"}, "engine": {"type": engine}, "serving": {"mode": mode}}
    if mode == "disaggregated":
        spec["scaling"] = {"prefill": role, "decode": role}
    else:
        spec["resources"] = {"gpu": {"count": gpus}}
    if given is not None:
        spec["provider"] = {"name": "x", "overrides": given}
    return Deployment("m", "n", "uid", 1, ModelDeploymentSpec.model_validate(spec))


@pytest.mark.parametrize(
    ("asked", "by", "message"),
    [
        (deployment("sglang"), KAITO, "KAITO does not support sglang engine"),
        (deployment("trtllm"), KAITO, "KAITO does not support trtllm engine"),
        (deployment("llamacpp"), DYNAMO, "Dynamo does not support llamacpp engine"),
        (deployment("llamacpp"), KUBERAY, "KubeRay does not support llamacpp engine"),
        (deployment("sglang"), KUBERAY, "KubeRay does not support sglang engine"),
        (deployment("trtllm"), KUBERAY, "KubeRay does not support trtllm engine"),
        (deployment(gpus=0), DYNAMO, "Dynamo requires GPU (set resources.gpu.count > 0)"),
        (deployment(gpus=0), KUBERAY, "KubeRay requires GPU (set resources.gpu.count > 0)"),
        (deployment(mode="disaggregated"), KAITO, "KAITO does not support disaggregated mode"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_compatibility_rules_of_the_second_design_table(
    asked: Deployment, by: Provider, message: str
) -> None:
    assert compatibility.check(by, asked, None).problems == (message,)


@pytest.mark.parametrize(
    ("asked", "by"),
    [
        (deployment("llamacpp", gpus=0), KAITO),
        (deployment("vllm"), KAITO),
        (deployment("trtllm", "disaggregated"), DYNAMO),
        (deployment("vllm", "disaggregated"), KUBERAY),
    ],
)
def test_combination_is_compatible_when_table_lacks_it(asked: Deployment, by: Provider) -> None:
    assert compatibility.check(by, asked, None) == compatibility.Compatibility((), False, None)


def test_supports_is_called_when_capabilities_and_types_fit() -> None:
    schema = Schema("example.com/v1")

    assert compatibility.check(KAITO, deployment(), schema).problems == ("the provider refuses it",)
    assert compatibility.check(KAITO, deployment("sglang"), schema).problems == (
        "KAITO does not support sglang engine",
    )


@pytest.mark.parametrize(
    ("given", "wrong", "warning"),
    [
        ({}, False, None),
        ({"frontend": {"replicas": 2}, "mode": "x"}, False, None),
        ({"frontned": {}}, False, "Ignored unknown provider.overrides: frontned"),
        ({"frontend": {"replica": 2}}, False, "Ignored unknown provider.overrides: frontend.replica"),
        ({"a": 1, "frontend": {"b": {"c": 1}}}, False, "Ignored unknown provider.overrides: a, frontend.b"),
        ({"frontend": {"replicas": "many"}}, True, None),
        ({"frontend": []}, True, None),
        ({"mode": 1, "x": 1}, True, "Ignored unknown provider.overrides: x"),
    ],
)
def test_unknown_keys_are_warned_about_and_wrong_types_refused(
    given: dict[str, Any], wrong: bool, warning: str | None
) -> None:
    result = compatibility.check(KAITO, deployment(given=given), None)

    assert result.invalid_overrides is wrong
    assert bool(result.problems) is wrong
    ending = "; KAITO supports frontend.replicas, mode"
    assert result.warning == (f"{warning}{ending}" if warning else None)


def test_wrong_type_is_named_with_its_path() -> None:
    [problem] = overrides.wrong_types(Overrides, {"frontend": {"replicas": "many"}})

    assert problem.startswith("overrides.frontend.replicas: must be a whole number")
