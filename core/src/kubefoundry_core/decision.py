"""What core says of a ModelDeployment: a pure function from the object to the status fields that core owns.

Contract §3: `Validated` always; the provider fields while `spec.provider.name` is set; phase, message and Ready
until a provider has reported.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any, Final

from kubefoundry_sdk.api import reasons, validation
from kubefoundry_sdk.api.conditions import Condition, condition, find
from kubefoundry_sdk.api.kinds import Object

EXPLICIT: Final = "explicit provider selection"
"""`status.provider.selectedReason` of a provider that the user named (contract §3)."""

NO_SELECTOR: Final = "No provider specified and provider-selector not installed"
"""003 §3.5.2, word for word."""

VALID: Final = "Schema validation passed"
"""003 §4.1, word for word."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """registered: names of the InferenceProviderConfigs. selector: whether a selector holds its Lease."""

    registered: Set[str]
    selector: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """Core's part in the choice of a provider; None for what is the selector's. waiting: what is still to come."""

    provider: dict[str, str] | None
    condition: Condition | None
    waiting: str


def decide(deployment: Object, around: Surroundings) -> Object:
    """The status fields that core has to own, conditions without transition times.

    A field that is not in the answer is to be released.
    """
    meta = deployment["metadata"]
    generation: int = meta["generation"]
    live: Object = deployment.get("status") or {}
    problems = validation.validate(deployment.get("spec", {}))
    invalid = "; ".join(f"{problem.path}: {problem.message}" for problem in problems)
    selection = select(deployment, around, valid=not invalid)
    status: Object = {}
    conditions = [
        condition(
            reasons.VALIDATED,
            not invalid,
            "ValidationFailed" if invalid else "ValidationPassed",
            invalid or VALID,
            generation=generation,
        )
    ]
    if selection.condition:
        conditions.append(selection.condition)
    if selection.provider:
        status["provider"] = selection.provider
    if find(live.get("conditions"), reasons.PROVIDER_COMPATIBLE) is None:
        phase, message = "Pending", invalid or selection.waiting
        if meta.get("deletionTimestamp"):
            phase = "Terminating"
            message = f"Waiting for finalizers: {', '.join(meta.get('finalizers') or ())}"
        status |= {"phase": phase, "message": message, "observedGeneration": generation}
        conditions.append(condition(reasons.READY, False, "Progressing", message, generation=generation))
    return {**status, "conditions": conditions}


def select(deployment: Object, around: Surroundings, *, valid: bool) -> Selection:
    """Core's part in the choice.

    A provider that is chosen stays so when its registration goes away, and a chosen one is never replaced by one
    that is not registered or for a spec that is not valid: either would tear down a model that serves.
    """
    generation: int = deployment["metadata"]["generation"]
    live: Object = deployment.get("status") or {}
    chosen: dict[str, Any] = live.get("provider") or {}
    current: str | None = chosen.get("name")
    wanted = _wanted(deployment.get("spec"))

    def selected(status: bool, reason: str, message: str) -> Condition:
        return condition(reasons.PROVIDER_SELECTED, status, reason, message, generation=generation)

    if wanted and current != wanted and wanted not in around.registered:
        message = not_registered(wanted, around.registered)
        return Selection(None, selected(False, "ProviderNotRegistered", message), message)
    if wanted and current != wanted and not valid:
        return Selection(None, None, "Waiting for a valid spec")
    if wanted:
        return Selection(
            {"name": wanted, "selectedReason": EXPLICIT},
            selected(True, "ExplicitlySelected", f"Provider {wanted} explicitly selected"),
            f"Waiting for provider {wanted} to report",
        )
    if current:
        return _handing_over(live, current)
    if around.selector:
        return Selection(None, None, "Waiting for a provider to be selected")
    return Selection(None, selected(False, "NoSelector", NO_SELECTOR), NO_SELECTOR)


def not_registered(name: str, registered: Set[str]) -> str:
    """Names those that are, instead."""
    known = ", ".join(sorted(registered)) or "none"
    return f"Provider '{name}' is not registered (registered: {known})"


def _wanted(spec: Any) -> str | None:
    """`spec.provider.name`, from a spec that no schema may have checked."""
    provider = spec.get("provider") if isinstance(spec, dict) else None
    name = provider.get("name") if isinstance(provider, dict) else None
    return name if isinstance(name, str) and name else None


def _handing_over(live: Object, current: str) -> Selection:
    """`spec.provider.name` was taken away: what core wrote stays until the selector has taken it over.

    Without that the selector would not know which provider to keep (contract §5).
    """
    waiting = f"Waiting for provider {current} to report"
    held = find(live.get("conditions"), reasons.PROVIDER_SELECTED)
    if (
        not held
        or held.get("reason") != "ExplicitlySelected"
        or live["provider"].get("selectedReason") != EXPLICIT
    ):
        return Selection(None, None, waiting)
    held.pop("lastTransitionTime", None)
    return Selection({"name": current, "selectedReason": EXPLICIT}, held, waiting)
