"""Matching: the environment that rules see, quantities, failures, and the values that decided."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk import cel
from kubefoundry_sdk._api.validation import default

METADATA = {"name": "llama", "namespace": "team-nlp", "labels": {"team": "nlp"}, "uid": "1"}


def matched(rule: str, spec: dict[str, Any], metadata: dict[str, Any] | None = None) -> bool | cel.Failure:
    compiled = cel.compile(rule)
    assert isinstance(compiled, cel.Rule), compiled
    return cel.match(compiled, cel.environment(default(spec), METADATA if metadata is None else metadata))


@pytest.mark.parametrize(
    ("rule", "spec", "expected"),
    [
        ("!has(spec.resources.gpu)", {}, True),
        ("!has(spec.resources.gpu)", {"resources": {"gpu": {}}}, False),
        ("spec.resources.gpu.count == 0", {"resources": {"gpu": {}}}, True),
        ("spec.scaling.replicas == 1 && spec.serving.mode == 'aggregated'", {}, True),
        ("spec.scaling.replicas == 0", {"scaling": {"replicas": 0}}, True),
        ("spec.resources == {} && !has(spec.env)", {}, True),
        ("has(spec.image)", {"image": None}, False),
        ("has(spec.provider)", {}, False),
    ],
)
def test_spec_is_defaulted_and_has_no_nulls(rule: str, spec: dict[str, Any], expected: bool) -> None:
    assert matched(rule, spec) is expected


def test_integer_fields_stay_integers_when_json_says_2_0() -> None:
    environment = cel.environment({"resources": {"gpu": {"count": 2.0}}}, {})
    rule = cel.compile("spec.resources.gpu.count % 2 == 0 && type(spec.resources.gpu.count) == int")

    assert isinstance(rule, cel.Rule)
    assert cel.match(rule, environment) is True


def test_maps_of_metadata_are_always_there() -> None:
    assert matched("!('team' in metadata.labels) && metadata.annotations == {}", {}, {}) is True


@pytest.mark.parametrize(
    ("rule", "memory", "expected"),
    [
        ("quantity(spec.resources.memory).isGreaterThan(quantity('16Gi'))", "32Gi", True),
        ("quantity(spec.resources.memory).isGreaterThan(quantity('16Gi'))", "16Gi", False),
        ("quantity(spec.resources.memory).isLessThan(quantity('1k'))", 999, True),
        ("quantity(spec.resources.memory).compareTo(quantity('1G')) == 0", "1000M", True),
        ("quantity(spec.resources.memory) == quantity('1024Mi')", "1Gi", True),
        ("quantity(spec.resources.memory).asInteger() == 1073741824", "1Gi", True),
        ("quantity(spec.resources.memory).isInteger()", "500m", False),
        (
            "quantity(spec.resources.memory).asInteger() == 0",
            "500m",
            cel.Failure("return error for overflow"),
        ),
        ("isQuantity(spec.resources.memory)", "1K", False),
        ("quantity(spec.resources.memory) == quantity('1')", "1K", cel.Failure("return error for overflow")),
    ],
)
def test_quantities(rule: str, memory: int | str, expected: bool | cel.Failure) -> None:
    assert matched(rule, {"resources": {"memory": memory}}) == expected


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("spec.resources.gpu.count > 0", "no such member in mapping: 'gpu'"),
        ("metadata.labels['absent'] == 'x'", "no such key"),
        ("dyn(spec.scaling.replicas)", "it does not return a bool"),
        ("1 / (spec.scaling.replicas - 1) == 1", "modulus or divide by zero"),
    ],
)
def test_failures_say_why(rule: str, why: str) -> None:
    assert matched(rule, {}) == cel.Failure(why)


def test_values_at_the_paths_that_a_rule_reads() -> None:
    rule = cel.compile(
        "has(spec.resources.gpu) && spec.engine.type in ['vllm'] && spec.env.exists(e, e.name == 'A') "
        "&& metadata.labels['team'] == 'nlp' && metadata.labels.tier == spec.model.id"
    )
    assert isinstance(rule, cel.Rule)

    values = cel.values_read(rule, cel.environment(default({"engine": {"type": "vllm"}}), METADATA))

    assert values == {
        "spec.resources.gpu": None,
        "spec.engine.type": "vllm",
        "spec.env": None,
        "metadata.labels['team']": "nlp",
        "metadata.labels.tier": None,
        "spec.model.id": None,
    }


def test_compiled_once() -> None:
    assert cel.compile("spec.engine.type == 'vllm'") is cel.compile("spec.engine.type == 'vllm'")
