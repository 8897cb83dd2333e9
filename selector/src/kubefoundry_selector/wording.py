"""The texts of a selection (contract §5), composed from facts, because this module knows no particular provider.

The reason of a choice is the `reason` of the rule that decided, if it has one. Otherwise it is the lack of an
alternative: the only CPU provider, or the only provider of that engine, among all registered providers. Otherwise it
is the rule. A provider of last resort (all its rules are below 0) does not count as an alternative to another
provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubefoundry_selector.candidate import Provider, Request, SelectionRule, exclusions
from kubefoundry_selector.memory import refusals, refuser

NO_HEALTHY: Final = "No healthy providers available"
"""contract §5, word for word."""

LAST_RESORT: Final = 0
"""A rule with a priority below this is of last resort (contract §5)."""

MAX_QUOTED: Final = 120
"""Characters of a rule that a reason quotes."""


def chosen_text(
    request: Request,
    chosen: Provider,
    rule: SelectionRule,
    registered: Sequence[Provider],
    missed: Sequence[Provider] = (),
) -> str:
    """Return `status.provider.selectedReason`.

    Args:
        request: The needs of the ModelDeployment.
        chosen: The chosen provider.
        rule: The rule that decided.
        registered: The registered providers.
        missed: Providers that take precedence and are down.
    """
    before = f"{_states(request, missed)}; " if missed else ""
    return before + _reason(request, chosen, rule, registered)


def waiting_text(request: Request, last: Provider, missed: Sequence[Provider]) -> str:
    """Return one line with the only healthy provider, of last resort, the provider to wait for, and the remedy."""
    return (
        f"{NO_HEALTHY} but {last.name}, which is of last resort: {_states(request, missed)}. Waiting for up to five "
        f"minutes; ask an administrator to check that provider's controller and upstream operator, or "
        f"set spec.provider.name to {last.name}"
    )


def engine_text(engine: str, without_provider: Sequence[str], unfit: Mapping[str, str]) -> str:
    """Return the end of `selectedReason`: the selected engine, and why each preferred one was not selected.

    Args:
        engine: The selected engine.
        without_provider: The preferred engines for which no provider was chosen.
        unfit: The engines that cannot run the spec, with the reasons, in the order of preference.
    """
    whys = [f"{name}: {why}" for name, why in unfit.items()]
    whys += [f"{name}: no provider" for name in without_provider]
    return f"engine {engine} selected" + (f" ({'; '.join(whys)})" if whys else "")


def waiting_for_engine_text(preferred: Request, attempt: Request, missed: Sequence[Provider]) -> str:
    """Return one line with the engine that is available, the provider to wait for, and the remedy."""
    return (
        f"{NO_HEALTHY} for engine {preferred.engine}, which is preferred: {_states(preferred, missed)}. Waiting for "
        "up to five minutes; ask an administrator to check that provider's controller and upstream operator, or set "
        f"spec.engine.type to {attempt.engine}"
    )


def no_engine_text(text: str, tried: Sequence[Request], unfit: Mapping[str, str]) -> str:
    """Return one line for a spec without an engine for which no provider is chosen.

    Args:
        text: The line of the preferred engine, empty if no engine can run the spec.
        tried: The requests of the engines for which no provider is chosen.
        unfit: The engines that cannot run the spec, with the reasons.
    """
    whys = "; ".join(f"{engine}: {why}" for engine, why in unfit.items())
    if not tried:
        return f"No engine can run the spec: {whys}. Change the spec"
    less_preferred = tried[1:]
    names = ", ".join(request.engine for request in less_preferred)
    others = f". No provider is selected for the engines {names} either" if names else ""
    others += refusals(
        {
            refuser(name, request.engine): words
            for request in less_preferred
            for name, words in request.left_out.items()
        }
    )
    return f"{text}{others}" + (f". Other engines cannot run the spec: {whys}" if whys else "")


def _states(request: Request, missed: Sequence[Provider]) -> str:
    return "; ".join(
        f"{offered.name} " + " and ".join(exclusion.text for exclusion in exclusions(request, offered))
        for offered in sorted(missed, key=lambda offered: offered.name)
    )


def _reason(request: Request, chosen: Provider, rule: SelectionRule, registered: Sequence[Provider]) -> str:
    if rule.reason:
        return rule.reason
    if not request.on_gpu and _only(chosen, [other for other in registered if other.cpu_support]):
        return f"no GPU requested → {chosen.name} (only CPU provider)"
    if _only(chosen, [other for other in registered if request.engine in other.engines]):
        return f"engine={request.engine} → {chosen.name} (only {request.engine} provider)"
    quoted = " ".join(rule.condition.split())
    if len(quoted) > MAX_QUOTED:
        quoted = quoted[: MAX_QUOTED - 1] + "…"
    return f"{quoted} → {chosen.name} (rule of priority {rule.priority})"


def no_provider_text(
    request: Request, registered: Sequence[Provider], failures: Mapping[tuple[str, int], str]
) -> str:
    """Return one line for a decision without a provider, with the obstacle of each provider and the remedy."""
    if not registered:
        return f"{NO_HEALTHY}: none is registered. Ask an administrator to install a provider"
    each = "; ".join(
        f"{offered.name} {_why_not(request, offered, failures)}"
        for offered in sorted(registered, key=lambda offered: offered.name)
    )
    if not any(offered.healthy for offered in registered):
        todo = "Ask an administrator to check the providers' controllers and upstream operators"
        return f"{NO_HEALTHY}: {each}. {todo}"
    if any(offered.denied for offered in registered):
        todo = "Ask an administrator for permission to use a provider, or name one that you may use"
        return f"No provider matches {request}: {each}. {todo} in spec.provider.name"
    return f"No provider matches {request}: {each}. Change the spec, or name a provider in spec.provider.name"


def no_choice_text(request: Request, registered: Sequence[Provider]) -> str:
    """Return one line if another selector chose no provider, with the obstacle of each provider."""
    each = "; ".join(
        f"{offered.name} "
        + (" and ".join(item.text for item in exclusions(request, offered)) or "was not chosen")
        for offered in sorted(registered, key=lambda offered: offered.name)
    )
    return f"The selector chose no provider for {request}: {each}. Name a provider in spec.provider.name"


def _only(chosen: Provider, able: Sequence[Provider]) -> bool:
    counted = [other for other in able if _last(chosen) or not _last(other)]
    return [other.name for other in counted] == [chosen.name]


def _last(offered: Provider) -> bool:
    """Check whether it is a provider of last resort."""
    return bool(offered.rules) and all(rule.priority < LAST_RESORT for rule in offered.rules)


def _why_not(request: Request, offered: Provider, failures: Mapping[tuple[str, int], str]) -> str:
    if excluded := exclusions(request, offered):
        return " and ".join(exclusion.text for exclusion in excluded)
    if not offered.rules:
        return "has no selection rules (it must be named)"
    broken = [
        f"rule {index} failed: {text}" for (name, index), text in failures.items() if name == offered.name
    ]
    return "has no matching rule" + (f" ({'; '.join(broken)})" if broken else "")
