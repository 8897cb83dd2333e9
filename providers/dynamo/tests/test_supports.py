"""What is refused, and with which words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_dynamo.settings import Settings
from kubefoundry_dynamo.supports import supports
from kubefoundry_dynamo.versions import Version
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing.generated import deployment

V1_0 = Schema("nvidia.com/v1alpha1", frozenset({"gpuType", "restart", "observedGeneration"}))
V0_9 = Schema("nvidia.com/v1alpha1", frozenset({"gpuType", "restart"}))
V1_5 = Schema("nvidia.com/v1beta1", frozenset({"v1beta1"}))
V1_2 = Schema("nvidia.com/v1alpha1", V1_0.features | {"annotations", "v1beta1"})
AGGREGATED = {"model": {"id": "org/m"}, "engine": {"type": "vllm"}, "resources": {"gpu": {"count": 1}}}
DISAGGREGATED = {
    "model": {"id": "org/m"},
    "engine": {"type": "sglang"},
    "serving": {"mode": "disaggregated"},
    "scaling": {"prefill": {"gpu": {"count": 1}}, "decode": {"gpu": {"count": 1}}},
}
VLLM_DISAGGREGATED = {**DISAGGREGATED, "engine": {"type": "vllm"}}


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
def test_name_that_no_service_can_have_is_refused(name: str) -> None:
    assert [text.split(":")[0] for text in problems(AGGREGATED, name)] == [
        f"name {name} cannot be the beginning of a Service's name, which Dynamo requires"
    ]


LONGEST = {
    ("vllm", "aggregated"): "vllmworker",
    ("sglang", "aggregated"): "sglangworker",
    ("trtllm", "aggregated"): "trtllmworker",
    ("vllm", "disaggregated"): "vllmprefillworker",
    ("sglang", "disaggregated"): "sglangprefillworker",
    ("trtllm", "disaggregated"): "trtllmprefillworker",
}
"""The longest name of a worker's workload without the graph's name."""


@pytest.mark.parametrize(("engine", "mode"), LONGEST)
@pytest.mark.parametrize(
    ("schema", "service_name"),
    [
        (V0_9, "{name}-{worker}"),
        (V1_2, "{name}-{worker}-989a60ed"),
        (V1_5, "{name}-{worker}-989a60ed"),
        (None, "{name}-{worker}-989a60ed"),
    ],
    ids=["0.9", "1.2", "1.5", "unknown"],
)
def test_name_limit_is_that_of_the_longest_service(
    engine: str, mode: str, schema: Schema | None, service_name: str
) -> None:
    spec = {**(AGGREGATED if mode == "aggregated" else DISAGGREGATED), "engine": {"type": engine}}
    longest = 63 - len(service_name.format(name="", worker=LONGEST[engine, mode]))

    assert problems(spec, "m" * longest, "n", schema) == []
    (problem,) = problems(spec, "m" * (longest + 1), "n", schema)
    assert problem.endswith(f"use at most {longest}")


@pytest.mark.parametrize(("spec", "limit"), [(AGGREGATED, 43), (VLLM_DISAGGREGATED, 36)])
def test_name_limit_is_as_seen_on_real_operators(spec: dict[str, Any], limit: int) -> None:
    assert problems(spec, "m" * limit, "n", V1_5) == []
    assert problems(spec, "m" * (limit + 1), "n", V1_5)


@pytest.mark.parametrize(
    ("spec", "component"), [(AGGREGATED, "VllmWorker"), (DISAGGREGATED, "SglangPrefillWorker")]
)
def test_name_limit_of_1_0_includes_the_component(spec: dict[str, Any], component: str) -> None:
    longest = 45 - len(component)

    assert problems(spec, "m" * longest, "n", V1_0) == []
    for length in (longest + 1, 61):
        (problem,) = problems(spec, "m" * length, "n", V1_0)
        assert problem.endswith(f"use at most {longest}")


@pytest.mark.parametrize(
    ("prefill", "decode", "refused"), [(0, 0, []), (1, 1, []), (0, 1, ["prefill"]), (2, 0, ["decode"])]
)
def test_role_with_no_replicas_is_refused_alone(prefill: int, decode: int, refused: list[str]) -> None:
    scaling = {"prefill": {"replicas": prefill}, "decode": {"replicas": decode}}
    messages = problems({**DISAGGREGATED, "scaling": scaling})

    assert messages == [
        f"Dynamo does not support scaling.{role}.replicas 0 alone: a request needs prefill and decode workers; "
        "set it to 1 or more, or both roles to 0"
        for role in refused
    ]


@pytest.mark.parametrize(
    "key", ["nvidia.com/dynamo-component", "pod-template-hash", "kubefoundry.ai/modeldeployment"]
)
def test_reserved_label_is_refused_if_it_passes_to_pods(key: str) -> None:
    model = replace(deployment(AGGREGATED), propagated_labels={key: "a", "team": "b"})

    [problem] = supports(model, V1_2, Settings())

    assert problem.endswith(f"set pod label {key} themselves: remove it from metadata.labels") or problem == (
        f"KubeFoundry sets pod label {key} itself: remove it from metadata.labels"
    )


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
    messages = problems({**AGGREGATED, "engine": {"type": engine, "args": {arg: "x"}}})

    assert [text.startswith(f"engine.args.{arg} ") for text in messages] == [True] * refused


def test_router_mode_has_one_place() -> None:
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
    messages = problems({**AGGREGATED, "image": image}, settings=Settings(runtime_version=assumed))

    assert [text.startswith(f"image {image} contains Dynamo 0.3.") for text in messages] == [True] * refused
