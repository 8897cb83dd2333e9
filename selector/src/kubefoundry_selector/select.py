"""The choice of a provider: a pure function from a request and the registered providers (contract §5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kubefoundry_sdk import cel
from kubefoundry_selector.candidate import Provider, Request, SelectionRule, exclusions
from kubefoundry_selector.wording import (
    LAST_RESORT,
    chosen_text,
    no_choice_text,
    no_provider_text,
    waiting_text,
)

RuleFailures = Mapping[tuple[str, int], str]
"""The errors of rules that could not be evaluated, by provider and index."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome; condition, selectedReason, message and Event are derived from it.

    Attributes:
        provider: None if no provider fits.
        reason: The reason of the condition `ProviderSelected`.
        text: `selectedReason`, or one line with the obstacle and the remedy.
        rule: Index of the rule that decided.
        engine: The engine that was chosen with the provider, None if the spec names it.
    """

    provider: str | None
    reason: Literal["AutoSelected", "NoHealthyProviders", "NoMatchingProvider"]
    text: str
    rule: int | None = None
    engine: str | None = None


Select = Callable[[Request, Sequence[Provider]], Decision]


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice of another selector.

    Attributes:
        provider: The name of the chosen provider.
        why: `status.provider.selectedReason`, such as `cheapest → NAME`.
    """

    provider: str
    why: str


@dataclass(frozen=True, slots=True)
class NoChoice:
    """The decision of another selector to choose none of the candidates.

    Attributes:
        why: The obstacle and the remedy, for the user.
    """

    why: str


Choose = Callable[[Request, Sequence[Provider]], Choice | NoChoice | None]
"""Chooses one of the candidates of a request. Returns None or a NoChoice to choose none."""


def select(request: Request, registered: Sequence[Provider]) -> Decision:
    """Decide for the candidate with the matching rule of the highest priority; ties are broken by name.

    A provider without a matching rule is never chosen. Rules are evaluated in the order of their priority, up to the
    first match. A rule of last resort does not decide while a provider that takes precedence has a short outage.
    """
    failures: dict[tuple[str, int], str] = {}
    for offered, rule in by_priority(candidates(request, registered)):
        if isinstance(rule.compiled, cel.InvalidRule):
            continue
        outcome = cel.match(rule.compiled, request.variables)
        if isinstance(outcome, cel.Failure):
            failures[offered.name, rule.index] = outcome.text
        elif outcome:
            missed = preferred_but_down(request, registered) if rule.priority < LAST_RESORT else []
            if any(down.outage == "short" for down in missed):
                return Decision(None, "NoHealthyProviders", waiting_text(request, offered, missed))
            text = chosen_text(request, offered, rule, registered, missed)
            return Decision(offered.name, "AutoSelected", text, rule.index)
    healthy = any(offered.healthy for offered in registered)
    return Decision(
        None,
        "NoMatchingProvider" if healthy else "NoHealthyProviders",
        no_provider_text(request, registered, failures),
    )


def candidates(request: Request, registered: Sequence[Provider]) -> list[Provider]:
    """Return the providers that can serve the request now (contract §5).

    A candidate is capable, ready and alive, and has not refused the request.
    """
    return [offered for offered in registered if not exclusions(request, offered)]


def preferred_but_down(request: Request, registered: Sequence[Provider]) -> list[Provider]:
    """Return the providers with an outage that would be chosen without it, by a rule that is not of last resort."""
    return [
        offered
        for offered in registered
        if offered.outage is not None
        and all(exclusion.check in ("ready", "heartbeat") for exclusion in exclusions(request, offered))
        and any(
            rule.priority >= LAST_RESORT
            and isinstance(rule.compiled, cel.Rule)
            and cel.match(rule.compiled, request.variables) is True
            for rule in offered.rules
        )
    ]


def by(choose: Choose) -> Select:
    """Return another selector's choice as a Select.

    The Select raises ValueError for a provider that is not a candidate.
    """

    def select(request: Request, registered: Sequence[Provider]) -> Decision:
        able = candidates(request, registered)
        choice = choose(request, able) if able else None
        if isinstance(choice, Choice):
            if choice.provider not in {offered.name for offered in able}:
                raise ValueError(f"{choice.provider} was chosen but is not a candidate")
            return Decision(choice.provider, "AutoSelected", choice.why)
        if not any(offered.healthy for offered in registered):
            return Decision(None, "NoHealthyProviders", no_provider_text(request, registered, {}))
        text = choice.why if choice else no_choice_text(request, registered)
        return Decision(None, "NoMatchingProvider", text)

    return select


def by_priority(providers: Iterable[Provider]) -> list[tuple[Provider, SelectionRule]]:
    """Return all rules in the order of evaluation."""
    pairs = [(offered, rule) for offered in providers for rule in offered.rules]
    return sorted(pairs, key=lambda pair: (-pair[1].priority, pair[0].name, pair[1].index))
