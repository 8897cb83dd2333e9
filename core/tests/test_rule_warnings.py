"""Warnings about selection rules at admission."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubefoundry_core.admission import providerconfigs

CAPABLE = {"engines": ["vllm"], "servingModes": ["aggregated"], "gpuSupport": True}
GOOD = "spec.engine.type == 'vllm' && metadata.labels.all(key, key.startsWith('a'))"
ADVICE = ". The selector skips a rule that it cannot compile: correct it"
LARGEST = "spec.env.exists(e, e.name == 'A')" + " || spec.engine.type == 'vllm'" * 11
"""About as many syntax nodes as a rule may have."""


def spec(*conditions: str) -> dict[str, Any]:
    return {"capabilities": CAPABLE, "selectionRules": [{"condition": text} for text in conditions]}


def review(new: Any, old: Any = None, message: str | None = None) -> dict[str, Any]:
    """Return the review of an InferenceProviderConfig. `message` is that of the stored `RulesValid=False`."""
    meta = {"name": "acme"}
    verdict = [{"type": "RulesValid", "status": "False", "message": message}] if message else []
    stored = old and {"metadata": meta, "spec": old, "status": {"conditions": verdict}}
    request = {
        "uid": "u-1",
        "kind": {"group": "kubefoundry.ai", "version": "v1alpha1", "kind": "InferenceProviderConfig"},
        "object": {"metadata": meta, "spec": new},
        "oldObject": stored,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def warnings(*args: Any) -> list[str]:
    answer = providerconfigs.validate(review(*args))["response"]
    assert answer["allowed"] is True
    return list(answer.get("warnings", []))


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        (GOOD, None),
        (LARGEST, None),
        ("spec.engine.type ==", "column 20: syntax error: the rule ends too early"),
        ("spec.engine.kind == 'vllm'", "column 13: no field 'kind' in spec.engine"),
        ("provider.name == 'a'", "column 1: unknown variable 'provider'"),
        ("[1].exists(x, y == x)", "column 15: unknown variable 'y'"),
        ("spec.engine.type.size()", "column 1: the rule returns an int, not a bool"),
        ("spec.image.endsIn('a')", "column 12: unknown function 'endsIn'"),
        ("(" * 400 + "true" + ")" * 400, "column 1: the rule has 4010 syntax nodes, at most 300 are allowed"),
        (
            "[1].all(a, [1].all(b, [1].all(c, true)))",
            "column 27: macros may be nested 2 deep, not deeper",
        ),
        ('"' + "\\n" * 400, "column 1: the string does not end"),
    ],
)
def test_new_rule_is_checked(condition: str, problem: str | None) -> None:
    found = warnings(spec(GOOD, condition))

    assert [text.partition(" (did you")[0].removesuffix(ADVICE) for text in found] == (
        [f"spec.selectionRules[1].condition, {problem}"] if problem else []
    )
    assert all(text.endswith(ADVICE) for text in found)


def test_rule_is_not_parsed_beyond_its_length() -> None:
    found = warnings(spec("spec." * 2000))

    assert found == ["spec.selectionRules[0].condition: may have 1024 characters at most, not 10000"]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (spec("bad"), ["spec.selectionRules: as stored"]),
        ({**spec("bad"), "documentation": "https://example.com"}, ["spec.selectionRules: as stored"]),
        (spec(GOOD), []),
        (spec("bad", GOOD), [f"spec.selectionRules[0].condition, column 1: unknown variable 'bad'{ADVICE}"]),
        (spec("worse"), [f"spec.selectionRules[0].condition, column 1: unknown variable 'worse'{ADVICE}"]),
    ],
)
def test_changed_rules_are_checked_and_others_as_stored(new: Any, expected: list[str]) -> None:
    old = {**spec("bad"), "documentation": "https://example.com/old"}

    assert warnings(new, old, "as stored") == expected


def test_hostile_rules_take_bounded_time() -> None:
    slow = "a" + "[0]" * 341

    found = warnings(spec(*[slow] * 64))

    checked, last = found[:-1], found[-1]
    assert 1 <= len(checked) < 64
    assert last == (
        f"spec.selectionRules: the rules from index {len(checked)} on were not checked, because the rules before "
        "them take too long. Once stored, the condition RulesValid shows whether the selector can use them"
    )


def test_checked_rules_leave_no_memory() -> None:
    def check(run: int) -> None:
        for number in range(8):
            warnings(spec(*[f"spec.engine.type != '{run}-{number}-{index}' && {GOOD}" for index in range(8)]))

    check(0)
    tracemalloc.start()
    try:
        check(1)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        check(2)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

    # 64 compiled rules take about 1.5 MB
    assert grown < 100_000


def test_core_imports_cel_with_the_first_rule() -> None:
    script = """
import sys
import kubefoundry_core.main
from kubefoundry_core.admission import providerconfigs
spec = {"capabilities": {}, "selectionRules": []}
request = {"uid": "u", "kind": {"group": "g", "kind": "k"}, "object": {"metadata": {}, "spec": spec}}
def loaded():
    providerconfigs.validate({"request": request})
    return "celpy" in sys.modules
before = loaded()
spec["selectionRules"] = [{"condition": "true"}]
print(before, loaded())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "False True\n"


@given(st.text(max_size=200) | st.text("spec.[]()'\"\\!?:&|=<>+-*/%{},0x1eur \n\t", max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_text_of_a_rule_fails_the_review(condition: str) -> None:
    assert len(warnings(spec(condition))) <= 1
