"""The explanation: every provider and rule, and the values that decided, as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from kubefoundry_selector.candidate import Provider, provider, request
from kubefoundry_selector.explain import explain
from kubefoundry_selector.select import select

DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "m", "namespace": "default"},
    "spec": {"model": {"id": "org/m"}, "engine": {"type": "vllm"}, "resources": {"gpu": {"count": 2}}},
}


def test_every_provider_and_rule_with_its_values(standard: list[Provider]) -> None:
    requested = request(DEPLOYMENT)

    explained = explain(requested, standard)

    assert explained.decision == select(requested, standard)
    assert [each.provider for each in explained.providers] == ["dynamo", "kaito", "kuberay"]
    dynamo, kaito, kuberay = explained.providers
    assert [(rule.index, rule.outcome, rule.decided) for rule in dynamo.rules] == [
        (0, "not matched", False),
        (1, "not matched", False),
        (2, "not matched", False),
        (3, "matched", True),
    ]
    assert dynamo.rules[3].values == {
        "spec.resources.gpu": {"count": 2, "type": "nvidia.com/gpu"},
        "spec.resources.gpu.count": 2,
    }
    assert dynamo.rules[0].values == {"spec.engine.type": "vllm"}
    assert [rule.outcome for rule in kaito.rules] == ["not matched", "not matched"]
    assert kuberay.exclusions == () and kuberay.rules == ()


def test_rules_of_excluded_providers_are_explained_too(standard: list[Provider]) -> None:
    requested = replace(request(DEPLOYMENT), left_out={"dynamo": "too small"})

    dynamo = explain(requested, standard).providers[0]

    assert [(each.check, each.text) for each in dynamo.exclusions] == [("refused", "refused it: too small")]
    assert dynamo.rules[3].outcome == "matched"
    assert not dynamo.rules[3].decided


def test_bad_and_failing_rules_say_what_is_wrong() -> None:
    rules = [{"condition": "spec.engin.type == 'x'"}, {"condition": "metadata.labels['no'] == 'x'"}]
    config = {"metadata": {"name": "a"}, "spec": {"selectionRules": rules}, "status": {"ready": True}}

    bad, failing = explain(request(DEPLOYMENT), [provider(config)]).providers[0].rules

    assert (bad.outcome, bad.problem) == (
        "invalid",
        "column 6: no field 'engin' in spec (did you mean 'engine'?)",
    )
    assert (failing.outcome, failing.problem) == ("failed", "no such key")
    assert failing.values == {"metadata.labels['no']": None}


def test_explanation_is_json(standard: list[Provider]) -> None:
    explained = explain(request(DEPLOYMENT), standard).to_json()

    assert json.loads(json.dumps(explained))["decision"]["provider"] == "dynamo"
