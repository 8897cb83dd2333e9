"""The condition `RulesValid` of an InferenceProviderConfig: whether its selection rules can be used."""

from __future__ import annotations

from collections.abc import Sequence

from kubefoundry_sdk import cel
from kubefoundry_sdk.selector import RULES_VALID, Condition, condition
from kubefoundry_selector.candidate import SelectionRule


def rules_valid(rules: Sequence[SelectionRule], *, generation: int) -> Condition:
    """Return the condition: False if a rule is skipped. It names each by index and position (contract §5)."""
    broken = [
        f"selectionRules[{rule.index}].condition, {rule.compiled.problem}"
        for rule in rules
        if isinstance(rule.compiled, cel.InvalidRule)
    ]
    if broken:
        message = f"{'; '.join(broken)}. Correct these rules; until then they are skipped"
        return condition(RULES_VALID, False, "InvalidRule", message, generation=generation)
    if not rules:
        message = "No selection rules: the provider is used only if spec.provider.name names it"
    else:
        message = f"Valid selection rules: {len(rules)}"
    return condition(RULES_VALID, True, "RulesValid", message, generation=generation)
