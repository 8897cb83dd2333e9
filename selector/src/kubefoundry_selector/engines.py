"""The choice of an engine together with a provider, for a spec that names no engine (contract §5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kubefoundry_sdk import Object
from kubefoundry_sdk.selector import (
    LiveModelDeployment,
    effective_engine,
    engine_problems,
    holders,
    states_engine,
)
from kubefoundry_selector.candidate import Provider, Request, request
from kubefoundry_selector.memory import left_out_for, refuser
from kubefoundry_selector.select import Decision, Select, preferred_but_down
from kubefoundry_selector.wording import engine_text, no_engine_text, waiting_for_engine_text


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests of a ModelDeployment.

    Attributes:
        all: One for each engine that may be selected, the preferred one first. If the spec names the engine, it is
            the only one.
        unfit: The engines that cannot run the spec, with the reasons.
    """

    all: tuple[Request, ...]
    unfit: Mapping[str, str]


def requests(
    deployment: Object, left_out: Mapping[str, str] | None = None, *, reselect: bool = False
) -> Requests:
    """Return the requests of a ModelDeployment with a valid spec.

    If the user requests another choice, the selected engine has no precedence. Otherwise it is the only one once it
    serves. Before that, it comes first, unless its provider refused it or it cannot run the spec.

    Args:
        deployment: The ModelDeployment.
        left_out: The providers that refused it, with their reasons (`Memory.left_out`).
        reselect: Whether the user requests another choice.
    """
    live = LiveModelDeployment(deployment)
    if live.requested_engine:
        left_out = left_out_for(left_out or {}, live.requested_engine)
        return Requests((request(deployment, left_out),), {})
    problems = engine_problems(deployment.get("spec") or {})
    engines = [engine for engine, problem in problems.items() if not problem]
    selected = effective_engine(deployment)
    if selected and not reselect:
        is_refused = refuser(live.provider_name, selected) in (left_out or {})
        held_by = holders(deployment)
        if live.provider_name in held_by or any(states_engine(deployment, name) for name in held_by):
            engines = [selected]
        elif selected in engines and not is_refused:
            engines = [selected, *(engine for engine in engines if engine != selected)]
    unfit = {engine: problem for engine, problem in problems.items() if problem}
    refused = left_out or {}
    return Requests(
        tuple(request(deployment, left_out_for(refused, engine), engine) for engine in engines), unfit
    )


def choose(requests: Requests, registered: Sequence[Provider], choice: Select) -> Decision:
    """Return the decision for the first engine for which a provider is chosen.

    A less preferred engine waits like a provider of last resort, while a provider of a preferred one has a short
    outage: otherwise that outage would decide on the engine forever.
    """
    passed: list[tuple[Request, Decision]] = []
    for attempt in requests.all:
        decision = choice(attempt, registered)
        if attempt.is_engine_named:
            return decision
        if decision.provider is not None:
            return _waiting(attempt, passed, registered) or _with_engine(requests, attempt, decision, passed)
        passed.append((attempt, decision))
    reason, text = (passed[0][1].reason, passed[0][1].text) if passed else ("NoMatchingProvider", "")
    return Decision(None, reason, no_engine_text(text, [tried for tried, _ in passed], requests.unfit))


def _waiting(
    attempt: Request, passed: Sequence[tuple[Request, Decision]], registered: Sequence[Provider]
) -> Decision | None:
    """Return the decision to wait for a provider of a preferred engine, None if there is none to wait for."""
    for preferred, _ in passed:
        missed = [down for down in preferred_but_down(preferred, registered) if down.outage == "short"]
        if missed:
            text = waiting_for_engine_text(preferred, attempt, missed)
            return Decision(None, "NoHealthyProviders", text)
    return None


def _with_engine(
    requests: Requests, attempt: Request, decision: Decision, passed: Sequence[tuple[Request, Decision]]
) -> Decision:
    without_provider = [tried.engine for tried, _ in passed]
    text = f"{decision.text}; {engine_text(attempt.engine, without_provider, requests.unfit)}"
    return replace(decision, text=text, engine=attempt.engine)
