"""What is refused, and with which words."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_dynamo.settings import Settings
from kubefoundry_dynamo.supports import supports
from kubefoundry_dynamo.versions import Version
from kubefoundry_sdk.provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment

V1_0 = Schema("nvidia.com/v1alpha1", frozenset({"gpuType", "restart", "observedGeneration"}))
V1_2 = Schema("nvidia.com/v1alpha1", V1_0.features | {"annotations", "v1beta1"})
AGGREGATED = {"model": {"id": "org/m"}, "engine": {"type": "vllm"}, "resources": {"gpu": {"count": 1}}}
DISAGGREGATED = {
    "model": {"id": "org/m"},
    "engine": {"type": "sglang"},
    "serving": {"mode": "disaggregated"},
    "scaling": {"prefill": {"gpu": {"count": 1}}, "decode": {"gpu": {"count": 1}}},
}


def problems(
    spec: dict[str, Any],
    name: str = "m",
    namespace: str = "models",
    schema: Schema | None = V1_2,
    settings: Settings | None = None,
) -> list[str]:
    return supports(deployment(spec, name, namespace), schema, settings or Settings())


def test_plain_deployments_are_supported() -> None:
    assert problems(AGGREGATED) == problems(DISAGGREGATED) == problems(AGGREGATED, schema=None) == []


@pytest.mark.parametrize("name", ["1m", "m.x", "-m", "m-", "M"])
def test_a_name_that_no_service_can_have(name: str) -> None:
    assert [text.split(":")[0] for text in problems(AGGREGATED, name)] == [
        f"name {name} cannot be the beginning of a Service's name, which Dynamo requires"
    ]


@pytest.mark.parametrize(
    ("spec", "schema", "longest"),
    [
        (AGGREGATED, V1_0, 45 - len("VllmWorker")),
        (DISAGGREGATED, V1_0, 45 - len("SglangPrefillWorker")),
        (AGGREGATED, V1_2, 63 - len("-vllmworker")),
        (DISAGGREGATED, V1_2, 63 - len("-sglangprefillworker")),
        (DISAGGREGATED, None, 63 - len("-sglangprefillworker")),
    ],
)
def test_the_longest_name(spec: dict[str, Any], schema: Schema | None, longest: int) -> None:
    assert problems(spec, "m" * longest, "n", schema) == []
    (problem,) = problems(spec, "m" * (longest + 1), "n", schema)
    assert problem.endswith(f"use at most {longest}")


def test_name_and_namespace_are_one_label_value() -> None:
    assert problems(AGGREGATED, "m" * 31, "n" * 31) == []
    (problem,) = problems(AGGREGATED, "m" * 32, "n" * 31)
    assert problem.endswith("use at most 31")


@pytest.mark.parametrize(
    ("engine", "arg", "refused"),
    [
        ("vllm", "is-prefill-worker", True),
        ("vllm", "is-decode-worker", True),
        ("sglang", "disaggregation-mode", True),
        ("trtllm", "disaggregation-strategy", True),
        ("trtllm", "override-engine-args", True),
        ("trtllm", "trtllm.kv_cache_config.max_tokens", True),
        ("trtllm", "trust_remote_code", True),
        ("trtllm", "extra-engine-args", False),
        ("vllm", "kv-transfer-config", False),
    ],
)
def test_args_that_are_not_the_users(engine: str, arg: str, refused: bool) -> None:
    found = problems({**AGGREGATED, "engine": {"type": engine, "args": {arg: "x"}}})

    assert [text.startswith(f"engine.args.{arg} ") for text in found] == [True] * refused


def test_the_router_mode_has_one_place() -> None:
    env = {"env": [{"name": "DYN_ROUTER_MODE", "value": "random"}]}
    both = {**AGGREGATED, **env, "provider": {"name": "dynamo", "overrides": {"routerMode": "kv"}}}

    assert problems({**AGGREGATED, **env}) == []
    assert problems(both) == [
        "provider.overrides.routerMode and env DYN_ROUTER_MODE both choose the router mode; remove one"
    ]


@pytest.mark.parametrize(
    ("image", "assumed", "refused"),
    [
        ("r/ai-dynamo/i:0.3.2", None, True),
        ("r/i:0.3.2", None, False),
        ("r/i:0.4.0", None, False),
        ("r/i:latest", None, False),
        ("r/i:latest", Version(0, 3), True),
    ],
)
def test_runtimes_with_unknown_flags(image: str, assumed: Version | None, refused: bool) -> None:
    found = problems({**AGGREGATED, "image": image}, settings=Settings(runtime_version=assumed))

    assert [text.startswith(f"image {image} contains Dynamo 0.3.") for text in found] == [True] * refused
