"""Why a provider was chosen, or none: every provider, every rule, with the values that decided. Plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from kubefoundry_selector import cel
from kubefoundry_selector.candidate import Exclusion, Provider, Request, SelectionRule, exclusions
from kubefoundry_selector.select import Decision, select


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """outcome: of evaluating it, even if its provider is excluded.
    problem: of a rule that is invalid or failed.
    values: JSON at the paths that the rule reads, None for an absent one.
    decided: whether this rule chose the provider.
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
    """A provider with exclusions is not a candidate, whatever its rules say."""

    provider: str
    exclusions: tuple[Exclusion, ...]
    rules: tuple[RuleVerdict, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The decision and its basis, by provider name."""

    decision: Decision
    providers: tuple[ProviderVerdict, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def explain(asked: Request, registered: Sequence[Provider]) -> Explanation:
    """Evaluates all rules of all providers; the decision is that of `select`."""
    decision = select(asked, registered)
    return Explanation(
        decision,
        tuple(
            ProviderVerdict(
                offered.name,
                exclusions(asked, offered),
                tuple(
                    _verdict(asked, rule, (offered.name, rule.index) == (decision.provider, decision.rule))
                    for rule in offered.rules
                ),
            )
            for offered in sorted(registered, key=lambda offered: offered.name)
        ),
    )


def _verdict(asked: Request, rule: SelectionRule, decided: bool) -> RuleVerdict:
    compiled = rule.compiled
    if isinstance(compiled, cel.InvalidRule):
        return RuleVerdict(
            rule.index, rule.condition, rule.priority, "invalid", str(compiled.problem), {}, decided
        )
    outcome = cel.match(compiled, asked.variables)
    failed = isinstance(outcome, cel.Failure)
    return RuleVerdict(
        rule.index,
        rule.condition,
        rule.priority,
        "failed" if failed else "matched" if outcome else "not matched",
        outcome.text if isinstance(outcome, cel.Failure) else None,
        cel.values_read(compiled, asked.variables),
        decided,
    )
