"""Hostile rules (sources §6.1) are refused at registration or stopped by the budget of an evaluation."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk import cel
from kubefoundry_sdk._cel import evaluation, rule, schema


def nested_exists(depth: int) -> str:
    opening = "".join(f"spec.env.exists(x{level}, " for level in range(depth))
    return opening + "false" + ")" * depth


REFUSED = {
    "nested exists, depth 3": (nested_exists(3), "macros may be nested 2 deep, not deeper"),
    "nested exists, depth 7": (nested_exists(7), "macros may be nested 2 deep, not deeper"),
    "doubling map, 24 times": (
        "['a']" + ".map(x, x + x)" * 24 + " == ['a']",
        "the rule has 760 syntax nodes, at most 300 are allowed",
    ),
    "10,000 terms": (
        " && ".join(["true"] * 10_000),
        "the rule is 79996 characters long, at most 1024 are allowed",
    ),
    "long list": (
        f"1 in [{', '.join(['1'] * 100)}]",
        "the rule has 1019 syntax nodes, at most 300 are allowed",
    ),
    "nested parentheses": (
        "(" * 200 + "true" + ")" * 200,
        "the rule has 2010 syntax nodes, at most 300 are allowed",
    ),
    "negations": ("!" * 1000 + "true", "the rule has 2010 syntax nodes, at most 300 are allowed"),
    "unterminated string of escapes": ('"' + "\\n" * 400, "the string does not end"),
    "unterminated long string": ("'''" + "\\n" * 400 + "'", "the string does not end"),
    "unterminated raw string": ("r'" + "\\n" * 400, "the string does not end"),
    "raw string that swallows its end": ("r'\\' + r\"" + "\\n" * 400 + '"', "the string does not end"),
}


@pytest.mark.parametrize(("rule", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_at_registration(rule: str, problem: str) -> None:
    compiled = cel.compile(rule)

    assert isinstance(compiled, cel.InvalidRule)
    assert compiled.problem.text == problem


MANY = cel.environment(
    {"env": [{"name": f"V{number}"} for number in range(256)]},
    {"annotations": {"long": "a" * 200_000, "short": "ab"}},
)
TOO_LONG = f"it takes more than {evaluation.MAX_STEPS} steps"
TOO_LARGE = f"it builds a value of more than {evaluation.MAX_CELLS} parts"
STOPPED = {
    "nested exists over many items": (nested_exists(2), TOO_LONG),
    "the same, error absorbed": (f"{nested_exists(2)} || true", TOO_LONG),
    "comparing long lists again and again": ("spec.env.exists(x, spec.env != spec.env)", TOO_LONG),
    "looking for an item again and again": ("spec.env.exists(x, 'a' in spec.env.map(y, y.name))", TOO_LONG),
    "reading a long text again and again": (
        "spec.env.exists(x, metadata.annotations.long.contains('b'))",
        TOO_LONG,
    ),
    "doubling a text": ("[metadata.annotations.long].map(x, x + x) != []", TOO_LARGE),
    "lists of lists": ("[spec.env].map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x) != []", TOO_LARGE),
    "copies in copies": ("spec.env.map(x, spec.env) != []", TOO_LARGE),
    "pairs of pairs": (
        "[[spec.env]].map(x, [x, x]).map(x, [x, x]).map(x, [x, x]).map(x, [x, x]) != []",
        TOO_LARGE,
    ),
}


@pytest.mark.parametrize(("rule", "why"), STOPPED.values(), ids=STOPPED.keys())
def test_stopped_by_the_budget(rule: str, why: str) -> None:
    compiled = cel.compile(rule)

    assert isinstance(compiled, cel.Rule), compiled
    assert cel.match(compiled, MANY) == cel.Failure(why)


def test_replace_is_measured_before_it_is_done() -> None:
    compiled = cel.compile("metadata.annotations.long.replace('a', metadata.annotations.long) != ''")

    assert isinstance(compiled, cel.Rule)
    assert cel.match(compiled, MANY) == cel.Failure("return error for overflow")


def test_catastrophic_regular_expression_is_harmless() -> None:
    compiled = cel.compile("metadata.annotations.long.matches('(a+)+b')")

    assert isinstance(compiled, cel.Rule)
    assert cel.match(compiled, MANY) is False


@pytest.mark.parametrize(
    ("rule", "most"),
    [
        (
            "(!has(spec.resources.gpu) || spec.resources.gpu.count == 0) && spec.serving.mode != 'disaggregated'",
            20,
        ),
        ("spec.engine.type == 'trtllm' || spec.engine.type == 'sglang'", 15),
        ("has(spec.resources.gpu) && spec.resources.gpu.count > 0", 15),
        ("spec.env.exists(e, e.name == 'V255')", 1600),
    ],
)
def test_ordinary_rules_stay_far_below_the_budget(rule: str, most: int) -> None:
    compiled = cel.compile(rule)
    assert isinstance(compiled, cel.Rule)
    budget = evaluation.Budget()
    environment = cel.environment(
        {
            **MANY.json["spec"],
            "engine": {"type": "vllm"},
            "serving": {"mode": "aggregated"},
            "resources": {"gpu": {"count": 1}},
        },
        {},
    )

    evaluation.Evaluation(compiled.tree, environment.values, budget).evaluate()

    assert evaluation.MAX_STEPS - budget.left <= most


def test_variable_that_no_rule_reads_is_not_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    converted, to_cel = [], schema.to_cel

    def noted(value: Any, kind: Any) -> Any:
        converted.append(kind)
        return to_cel(value, kind)

    monkeypatch.setattr(rule, "to_cel", noted)
    variables = cel.environment({"engine": {"type": "vllm"}}, {"labels": {"team": "a"}})
    compiled = cel.compile("spec.engine.type == 'vllm'")
    assert isinstance(compiled, cel.Rule)

    assert [cel.match(compiled, variables) for _ in range(3)] == [True] * 3

    assert converted == [schema.VARIABLES["spec"]]
