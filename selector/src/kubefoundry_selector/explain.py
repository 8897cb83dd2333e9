"""Explains a decision: the verdict on every provider and every rule, and the values that the rules read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from kubefoundry_sdk import cel
from kubefoundry_selector.candidate import Exclusion, Provider, Request, SelectionRule, exclusions
from kubefoundry_selector.select import Decision, select


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """The evaluation of a rule.

    Attributes:
        outcome: The outcome of the evaluation, even if the provider is excluded.
        problem: The problem of an invalid or failed rule, else None.
        values: JSON at the paths that the rule reads, None for an absent value.
        decided: Whether this rule chose the provider.
    """

    index: int
    condition: str
    priority: int
    outcome: Literal["matched", "not matched", "failed", "invalid"]
    problem: str | None
    values: Mapping[str, Any]
    decided: bool


@dataclass(frozen=True, slots=True)
class ProviderVerdict:
    """The evaluation of a provider. A provider with exclusions is not a candidate, whatever its rules return."""

    provider: str
    exclusions: tuple[Exclusion, ...]
    rules: tuple[RuleVerdict, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The decision and its basis, by provider name."""

    decision: Decision
    providers: tuple[ProviderVerdict, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON."""
        return asdict(self)


def explain(request: Request, registered: Sequence[Provider]) -> Explanation:
    """Evaluate all rules of all providers. The decision is that of `select`."""
    decision = select(request, registered)
    return Explanation(
        decision,
        tuple(
            ProviderVerdict(
                offered.name,
                exclusions(request, offered),
                tuple(
                    _verdict(request, rule, (offered.name, rule.index) == (decision.provider, decision.rule))
                    for rule in offered.rules
                ),
            )
            for offered in sorted(registered, key=lambda offered: offered.name)
        ),
    )


def _verdict(request: Request, rule: SelectionRule, decided: bool) -> RuleVerdict:
    compiled = rule.compiled
    if isinstance(compiled, cel.InvalidRule):
        return RuleVerdict(
            rule.index, rule.condition, rule.priority, "invalid", str(compiled.problem), {}, decided
        )
    outcome = cel.match(compiled, request.variables)
    failed = isinstance(outcome, cel.Failure)
    return RuleVerdict(
        rule.index,
        rule.condition,
        rule.priority,
        "failed" if failed else "matched" if outcome else "not matched",
        outcome.text if isinstance(outcome, cel.Failure) else None,
        cel.values_read(compiled, request.variables),
        decided,
    )
