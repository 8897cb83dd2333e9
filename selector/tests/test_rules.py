"""`RulesValid`: a bad rule is named by index and column, the others stay usable."""

from __future__ import annotations

from kubefoundry_selector.candidate import Provider, provider
from kubefoundry_selector.controller import rules_valid


def test_standard_rules_are_valid(standard: list[Provider]) -> None:
    conditions = {each.name: rules_valid(each.rules, generation=3) for each in standard}

    assert {name: item["status"] for name, item in conditions.items()} == dict.fromkeys(conditions, "True")
    assert conditions["dynamo"]["message"] == "Valid selection rules: 4"
    assert conditions["kuberay"]["message"] == (
        "No selection rules: the provider is used only if spec.provider.name names it"
    )
    assert conditions["kaito"]["observedGeneration"] == 3


def test_bad_rules_are_named_and_skipped() -> None:
    offered = provider(
        {
            "metadata": {"name": "a"},
            "spec": {
                "selectionRules": [
                    {"condition": "true"},
                    {"condition": "spec.engin.type == 'x'"},
                    {"condition": "spec.engine.type =="},
                ]
            },
        }
    )

    condition = rules_valid(offered.rules, generation=1)

    assert (condition["type"], condition["status"], condition["reason"]) == (
        "RulesValid",
        "False",
        "InvalidRule",
    )
    assert condition["message"] == (
        "selectionRules[1].condition, column 6: no field 'engin' in spec (did you mean 'engine'?); "
        "selectionRules[2].condition, column 20: syntax error: the rule ends too early. "
        "Correct these rules; until then they are skipped"
    )
