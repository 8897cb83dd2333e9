"""The choice among providers: contract §5 for the standard three, and the rules of contract §5 for any."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from kubefoundry_sdk._api.validation import validate
from kubefoundry_selector.candidate import Provider, Request, provider, request
from kubefoundry_selector.select import select

COMPONENT = {"gpu": {"count": 1}, "memory": "64Gi"}


def spec_for(engine: str, mode: str, gpus: int | None) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "model": {"id": "org/model"},
        "engine": {"type": engine},
        "serving": {"mode": mode},
    }
    if mode == "disaggregated":
        spec["scaling"] = {"prefill": COMPONENT, "decode": COMPONENT}
    if gpus is not None:
        spec["resources"] = {"gpu": {"count": gpus}}
    return spec


def request_for(spec: dict[str, Any], **metadata: Any) -> Request:
    return request({"metadata": {"name": "m", "namespace": "default", **metadata}, "spec": spec})


def by_the_design(engine: str, mode: str, gpus: int | None) -> tuple[str, str]:
    """contract §5 line by line; a disaggregated spec states its GPUs elsewhere (contract §5)."""
    if not gpus and mode != "disaggregated":
        return "kaito", "no GPU requested → kaito (only CPU provider)"
    if engine in ("trtllm", "sglang"):
        return "dynamo", f"engine={engine} → dynamo (only {engine} provider)"
    if engine == "llamacpp":
        return "kaito", "engine=llamacpp → kaito (only llamacpp provider)"
    if mode == "disaggregated":
        return "dynamo", "mode=disaggregated → dynamo (best disaggregated support)"
    return "dynamo", "default → dynamo (GPU inference default)"


VALID = [
    case
    for case in product(
        ("vllm", "sglang", "trtllm", "llamacpp"), ("aggregated", "disaggregated"), (None, 0, 1, 8)
    )
    if not validate(spec_for(*case)) and case[:2] != ("llamacpp", "disaggregated")
]


@pytest.mark.parametrize(("engine", "mode", "gpus"), VALID)
def test_valid_spec_goes_to_the_provider_of_the_design(
    standard: list[Provider], engine: str, mode: str, gpus: int | None
) -> None:
    decision = select(request_for(spec_for(engine, mode, gpus)), standard)

    assert (decision.provider, decision.text) == by_the_design(engine, mode, gpus)
    assert decision.reason == "AutoSelected"


def test_selection_cases_reach_every_line_of_the_design() -> None:
    assert len({by_the_design(*case)[1] for case in VALID}) == 6


GPU = {"engines": ["vllm", "sglang"], "servingModes": ["aggregated"], "gpuSupport": True}
ALWAYS = {"condition": "true"}


def other(name: str, *rules: dict[str, Any], **capabilities: Any) -> Provider:
    return provider(
        {
            "metadata": {"name": name},
            "spec": {"capabilities": {**GPU, **capabilities}, "selectionRules": list(rules)},
            "status": {"ready": True},
        }
    )


ON_GPU = spec_for("vllm", "aggregated", 1)


@pytest.mark.parametrize(
    ("providers", "chosen"),
    [
        ([other("b", {**ALWAYS, "priority": 1}), other("a", ALWAYS)], "b"),
        ([other("b", ALWAYS), other("a", ALWAYS)], "a"),
        ([other("b", ALWAYS, {**ALWAYS, "priority": 9}), other("a", {**ALWAYS, "priority": 5})], "b"),
        ([other("a", {**ALWAYS, "priority": -1})], "a"),
        ([other("a"), other("b", ALWAYS)], "b"),
        ([other("a", {"condition": "spec.engin == 1", "priority": 9}, ALWAYS)], "a"),
        ([other("a", {"condition": "metadata.labels['no'] == 'x'", "priority": 9}), other("b", ALWAYS)], "b"),
        ([other("a", ALWAYS, engines=["sglang"]), other("b", ALWAYS)], "b"),
        ([other("a", ALWAYS, servingModes=["disaggregated"]), other("b", ALWAYS)], "b"),
        ([other("a", ALWAYS, gpuSupport=False, cpuSupport=True), other("b", ALWAYS)], "b"),
        ([replace(other("a", ALWAYS), not_ready=""), other("b", ALWAYS)], "b"),
        ([replace(other("a", ALWAYS), heartbeat_fresh=False), other("b", ALWAYS)], "b"),
    ],
    ids=[
        "higher priority",
        "tie by name",
        "highest of several rules",
        "negative priority",
        "without rules never",
        "bad rule skipped",
        "failing rule does not match",
        "engine",
        "mode",
        "no GPU",
        "not ready",
        "no heartbeat",
    ],
)
def test_candidates_and_their_order(providers: list[Provider], chosen: str) -> None:
    assert select(request_for(ON_GPU), providers).provider == chosen
    assert select(request_for(ON_GPU), providers[::-1]).provider == chosen


def test_selection_leaves_out_provider_that_refused() -> None:
    refused = replace(request_for(ON_GPU), left_out={"a": "no"})

    assert select(refused, [other("a", ALWAYS), other("b", ALWAYS)]).provider == "b"


def test_provider_of_earlier_contract_is_skipped_for_newer_field() -> None:
    newer = {**ON_GPU, "engine": {**ON_GPU["engine"], "extraArgs": ["--repeated", "a"]}}
    providers = [replace(other("a", ALWAYS), contract="0.2"), replace(other("b", ALWAYS), contract="0.3")]

    assert select(request_for(ON_GPU), providers).provider == "a"
    assert select(request_for(newer), providers).provider == "b"
    assert "a implements version 0.2 of the contract" in select(request_for(newer), providers[:1]).text


def test_rules_see_metadata() -> None:
    rule = {"condition": "metadata.namespace == 'team-x' && metadata.labels['tier'] == 'gold'"}
    providers = [other("a", rule)]

    assert select(request_for(ON_GPU, namespace="team-x", labels={"tier": "gold"}), providers).provider == "a"
    assert select(request_for(ON_GPU, namespace="team-x", labels={"tier": "tin"}), providers).provider is None


@pytest.mark.parametrize(
    ("providers", "spec", "text"),
    [
        ([other("a", {**ALWAYS, "reason": "team X pays → a"})], ON_GPU, "team X pays → a"),
        ([other("a", ALWAYS)], ON_GPU, "engine=vllm → a (only vllm provider)"),
        ([other("a", ALWAYS), other("b")], ON_GPU, "true → a (rule of priority 0)"),
        (
            [other("a", {"condition": "spec.engine.type\n  == 'vllm'", "priority": 7}), other("b")],
            ON_GPU,
            "spec.engine.type == 'vllm' → a (rule of priority 7)",
        ),
        (
            [
                other("a", ALWAYS, engines=["llamacpp"], cpuSupport=True),
                other("b", engines=["llamacpp"], cpuSupport=True),
            ],
            spec_for("llamacpp", "aggregated", None),
            "true → a (rule of priority 0)",
        ),
        (
            [
                other("a", ALWAYS, engines=["llamacpp"], cpuSupport=True),
                replace(other("b", engines=["vllm"], cpuSupport=True), not_ready=""),
            ],
            spec_for("llamacpp", "aggregated", None),
            "engine=llamacpp → a (only llamacpp provider)",
        ),
        (
            [
                other("a", ALWAYS, engines=["llamacpp"], cpuSupport=True),
                other("last", {**ALWAYS, "priority": -1}, engines=["llamacpp"], cpuSupport=True),
            ],
            spec_for("llamacpp", "aggregated", None),
            "no GPU requested → a (only CPU provider)",
        ),
        (
            [
                other("last", {**ALWAYS, "priority": -1}, engines=["vllm"]),
                other("later", {**ALWAYS, "priority": -2}, engines=["vllm"]),
            ],
            ON_GPU,
            "true → last (rule of priority -1)",
        ),
    ],
    ids=[
        "stated",
        "only engine",
        "the rule",
        "the rule on one line",
        "two CPU providers",
        "one not ready",
        "one that offers itself last",
        "two that do",
    ],
)
def test_reason_is_stated_or_composed_from_facts(
    providers: list[Provider], spec: dict[str, Any], text: str
) -> None:
    assert select(request_for(spec), providers).text == text


def test_none_registered() -> None:
    decision = select(request_for(ON_GPU), [])

    assert decision.provider is None
    assert decision.reason == "NoHealthyProviders"
    assert (
        decision.text
        == "No healthy providers available: none is registered. Ask an administrator to install a provider"
    )


def test_none_healthy_says_what_ails_each() -> None:
    no_crd = {"type": "UpstreamReady", "status": "False", "message": "CRD x.y is not installed"}
    lost = replace(other("a", ALWAYS), heartbeat_fresh=False)
    waiting = provider(
        {"metadata": {"name": "b"}, "spec": {"capabilities": GPU}, "status": {"conditions": [no_crd]}}
    )

    decision = select(request_for(ON_GPU), [lost, waiting])

    assert decision.reason == "NoHealthyProviders"
    assert decision.text == (
        "No healthy providers available: a sends no heartbeat; "
        "b is not ready (CRD x.y is not installed). Ask an administrator to check the providers' "
        "controllers and upstream operators"
    )


LAST = {"condition": "true", "priority": -100, "reason": "no other takes it → last"}
PREFERRED = {"condition": "true", "priority": 0}


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        pytest.param(PREFERRED, {"heartbeat_fresh": False}, id="no heartbeat"),
        pytest.param(PREFERRED, {"not_ready": " (CRD x.y is not installed)"}, id="not ready"),
    ],
)
def test_last_resort_waits_for_preferred_provider_down_briefly(
    rule: dict[str, Any], change: dict[str, Any]
) -> None:
    down = replace(other("a", rule), **change)
    last = other("last", LAST)

    waits = select(request_for(ON_GPU), [replace(down, outage="short"), last])
    later = select(request_for(ON_GPU), [replace(down, outage="long"), last])

    states = (
        "a sends no heartbeat" if "heartbeat_fresh" in change else "a is not ready (CRD x.y is not installed)"
    )
    assert (waits.provider, waits.reason) == (None, "NoHealthyProviders")
    assert waits.text == (
        f"No healthy providers available but last, which is of last resort: {states}. Waiting for up to five "
        "minutes; ask an administrator to check that provider's controller and upstream operator, or "
        "set spec.provider.name to last"
    )
    assert (later.provider, later.text) == ("last", f"{states}; no other takes it → last")


@pytest.mark.parametrize(
    ("down", "chosen", "left_out"),
    [
        pytest.param({"condition": "true", "priority": -1}, LAST, {}, id="one of last resort, too"),
        pytest.param({"condition": "false", "priority": 1}, LAST, {}, id="one without a matching rule"),
        pytest.param({"condition": "spec.engin", "priority": 1}, LAST, {}, id="one whose rule is invalid"),
        pytest.param(PREFERRED, LAST, {"a": "no"}, id="one that has refused it"),
        pytest.param(PREFERRED, {"condition": "true", "priority": 0}, {}, id="not chosen as the last resort"),
    ],
)
def test_nobody_waits_for(down: dict[str, Any], chosen: dict[str, Any], left_out: dict[str, str]) -> None:
    gone = replace(other("a", down), heartbeat_fresh=False, outage="short")

    decision = select(replace(request_for(ON_GPU), left_out=left_out), [gone, other("last", chosen)])

    assert decision.provider == "last"
    assert "heartbeat" not in decision.text


def test_lost_provider_is_skipped_when_it_cannot_run_the_model() -> None:
    gone = replace(
        other("a", PREFERRED), heartbeat_fresh=False, outage="short", engines=frozenset({"sglang"})
    )

    assert select(request_for(ON_GPU), [gone, other("last", LAST)]).provider == "last"


def test_none_matching_says_why_each_does_not_fit_and_what_to_do(standard: list[Provider]) -> None:
    providers = [replace(p, not_ready="") if p.name == "dynamo" else p for p in standard]
    providers.append(other("other", {"condition": "metadata.labels['team'] == 'x'"}))

    decision = select(request_for(ON_GPU), providers)

    assert decision.reason == "NoMatchingProvider"
    assert decision.text == (
        "No provider matches engine=vllm, mode=aggregated, gpu=1: dynamo is not ready; kaito has no matching rule; "
        "kuberay has no selection rules (it must be named); "
        "other has no matching rule (rule 0 failed: no such key). "
        "Change the spec, or name a provider in spec.provider.name"
    )


def test_all_that_excludes_a_provider_is_reported(standard: list[Provider]) -> None:
    text = select(request_for(spec_for("llamacpp", "disaggregated", None)), standard).text

    assert "dynamo does not support llamacpp engine; kaito does not support disaggregated mode;" in text
