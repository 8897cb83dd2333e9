"""Core's status fields of a ModelDeployment: a pure function of the object.

Core writes these fields (contract §3):

- `Validated`, always.
- The provider fields, while `spec.provider.name` is set.
- Phase, message and `Ready`, until a provider has reported, and for a deletion that no provider reports.
- `ProviderHealthy`, after a provider was unhealthy once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubefoundry_core.engine import naming_engine, selected, unfit_engine
from kubefoundry_core.provider_health import Health, provider_healthy
from kubefoundry_sdk._api import contract_version, handover, managed_fields, names, reasons, validation
from kubefoundry_sdk._api.conditions import Condition, condition, without_time
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment

EXPLICIT: Final = reasons.EXPLICIT_SELECTION
"""`status.provider.selectedReason` of a provider that the user named (contract §3)."""

NO_SELECTOR: Final = "No provider specified and provider-selector not installed"
"""contract §5, word for word."""

WAITING: Final = "Waiting for a provider to be selected and to report status"
"""One message for both waits: a second message after the selection would cost every deployment one more write."""

VALID: Final = "Schema validation passed"
"""The same words in every release (contract §5)."""

_NONE_FITS: Final = ("NoMatchingProvider", "NoHealthyProviders")
"""Reasons of a selector that chooses no provider (contract §3)."""

ALTERED: Final = (
    "An admission webhook or policy changes the status that kubefoundry-core writes, which may keep providers "
    "waiting: ask an administrator to exempt modeldeployments/status from that"
)
"""The message instead of a wait for a provider, because the provider waits for core's `Validated`."""

REPORTED: Final = frozenset({"phase", "message", "observedGeneration", reasons.READY})
"""Status fields and the condition that the provider owns from its first report on (contract §3)."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The state of the cluster that a decision depends on.

    Attributes:
        registered: The versions of the contract that the registered providers state (`Providers.registered`).
        selector: Whether a selector holds its Lease.
        health: Health of providers by name, if it is known and due to be reported.
        unreported: Whether the ModelDeployment is being deleted, and no provider has reported that in time.
        altered: Whether admission changed the last status that core wrote.
        engines: The engines that each registered provider supports.
        volume_problem: Why a volume of the model cannot be used, or a claim is not created; empty if all can.
        volume_reason: The reason of `Validated` for that problem.
    """

    registered: Mapping[str, str]
    selector: bool
    health: Mapping[str, Health] = field(default_factory=dict)
    unreported: bool = False
    altered: bool = False
    engines: Mapping[str, Collection[str]] = field(default_factory=dict)
    volume_problem: str = ""
    volume_reason: str = reasons.CLAIM_NOT_READY


@dataclass(frozen=True, slots=True)
class Selection:
    """Core's part in the choice of a provider. None leaves a field to the selector.

    Attributes:
        waiting: The message until a provider reports. It names the next step, and the component or user that takes
            it.
    """

    provider: dict[str, str] | None
    condition: Condition | None
    waiting: str


def decide(
    deployment: Object, surroundings: Surroundings, problems: Sequence[validation.Problem] | None = None
) -> Object:
    """Return the status fields that core has to own, conditions without transition times.

    Core has to release every other field.

    Args:
        deployment: The ModelDeployment.
        surroundings: The state of the cluster.
        problems: The problems of the spec, None to look for them here.
    """
    live = LiveModelDeployment(deployment)
    generation = live.generation
    reason, invalid = _validity(live, surroundings, problems)
    selection = select(deployment, surroundings, valid=not invalid)
    chosen = selection.provider["name"] if selection.provider else live.provider_name
    engine = selected(
        deployment,
        chosen,
        surroundings.engines,
        is_own_choice=selection.provider is not None,
        valid=not invalid,
    )
    of_provider = {**(selection.provider or {}), **({"engine": engine} if engine else {})}
    status: Object = {"provider": of_provider} if of_provider else {}
    healthy = provider_healthy(
        live.condition(reasons.PROVIDER_HEALTHY),
        [surroundings.health.get(name) for name in providers_of(deployment, chosen)],
        generation=generation,
    )
    validated = condition(reasons.VALIDATED, not invalid, reason, invalid or VALID, generation=generation)
    named = naming_engine(live, selection.condition, engine, surroundings.engines)
    conditions = [validated, named, healthy]
    if not _has_reported(deployment) or _core_reports_deletion(deployment, surroundings):
        phase = "Terminating" if live.is_deleting else "Pending"
        message = _progress(live, surroundings, invalid, chosen, selection.waiting)
        status |= {"phase": phase, "message": message, "observedGeneration": generation}
        conditions.append(condition(reasons.READY, False, "Progressing", message, generation=generation))
    return {**status, "conditions": [each for each in conditions if each]}


def _validity(
    live: LiveModelDeployment, surroundings: Surroundings, problems: Sequence[validation.Problem] | None
) -> tuple[str, str]:
    """Return the reason of `Validated`, and why the spec cannot be applied; empty if it can."""
    if problems is None:
        problems = validation.validate(live.obj.get("spec", {}))
    if problems:
        return "ValidationFailed", "; ".join(f"{problem.path}: {problem.message}" for problem in problems)
    if ignored := _ignored_fields(live, surroundings):
        return reasons.PROVIDER_TOO_OLD, ignored
    if surroundings.volume_problem:
        return surroundings.volume_reason, surroundings.volume_problem
    return "ValidationPassed", ""


def _progress(
    live: LiveModelDeployment, surroundings: Surroundings, invalid: str, chosen: str | None, waiting: str
) -> str:
    """Return the message of a model on which no provider reports."""
    if live.is_deleting:
        return f"Waiting for finalizers: {', '.join(live.finalizers)}"
    if live.is_paused and invalid == surroundings.volume_problem:
        return names.PAUSED_MESSAGE
    if invalid:
        return invalid
    if waiting == WAITING and chosen and chosen not in surroundings.registered:
        return not_registered(chosen, surroundings.registered)
    if waiting == WAITING:
        waiting = _none_fits(live) or unfit_engine(live.obj, chosen) or WAITING
    return ALTERED if surroundings.altered and waiting.startswith("Waiting for ") else waiting


def _ignored_fields(live: LiveModelDeployment, surroundings: Surroundings) -> str:
    """Return why the provider would ignore fields of the spec; empty if it would ignore none.

    The provider of the last selection counts, too: it must not act before the selector has chosen another provider.
    """
    chosen = live.requested_provider or live.provider_name or ""
    if chosen not in surroundings.registered:
        return ""
    why = contract_version.ignored_fields(live.obj.get("spec") or {}, surroundings.registered[chosen])
    return f"provider {chosen} {why}" if why else ""


def _core_reports_deletion(deployment: Object, surroundings: Surroundings) -> bool:
    """Check whether core reports the deletion of a model on which a provider has reported.

    Core then keeps phase, message and `Ready` until the provider takes them over. If core released them, `Ready`
    would have no status.
    """
    live = LiveModelDeployment(deployment)
    if not live.is_deleting:
        return False
    if live.phase != "Terminating":
        return surroundings.unreported
    fields: Any = managed_fields.owned(deployment, names.CORE_MANAGER, "status") or {}
    return "f:message" in fields.get("f:status", {})


def providers_of(deployment: Object, chosen: str | None) -> list[str]:
    """Return the chosen provider, then other providers that still report on the model, because one may serve it."""
    reporting = names.providers_of(LiveModelDeployment(deployment).reporters())
    return [*([chosen] if chosen else []), *(name for name in reporting if name != chosen)]


def _none_fits(live: LiveModelDeployment) -> str | None:
    """Return the selector's reason for choosing no provider, or None if it reports none for this generation."""
    selected = live.condition(reasons.PROVIDER_SELECTED) or {}
    if selected.get("status") != "False" or selected.get("observedGeneration") != live.generation:
        return None
    return str(selected.get("message")) if selected.get("reason") in _NONE_FITS else None


def shared(deployment: Object) -> frozenset[str]:
    """Return the fields and conditions of REPORTED that core still co-owns with the chosen provider.

    A provider takes over the fields whose values it changes. Core stays an owner of fields with equal values until it
    releases them. After a change of the provider, nothing is shared until the new one has written, because the
    previous provider cannot release a condition while core keeps a part of it.
    """
    if not _chosen_has_written(deployment):
        return frozenset()
    fields: Any = managed_fields.owned(deployment, names.CORE_MANAGER, "status") or {}
    status = fields.get("f:status", {})
    owned = {name.removeprefix("f:") for name in status} | managed_fields.conditions(status).keys()
    return REPORTED & owned


def _has_reported(deployment: Object) -> bool:
    """Check whether a provider has reported on the model, so that phase, message and `Ready` are the provider's.

    The write of any provider counts. A provider that waits for another provider's clean-up reports before it has
    created anything, and the other provider reports until it has released the model. After a reset of managedFields,
    a condition without an owner counts. A condition that another manager wrote does not count, otherwise core would
    stop reporting although no provider reports on the model.
    """
    live = LiveModelDeployment(deployment)
    if names.providers_of(live.reporters()):
        return True
    if live.condition(reasons.PROVIDER_COMPATIBLE) is None:
        return False
    owners = managed_fields.condition_owners(deployment, reasons.PROVIDER_COMPATIBLE)
    return not owners or handover.RESET in owners or bool(names.providers_of(owners))


def _chosen_has_written(deployment: Object) -> bool:
    live = LiveModelDeployment(deployment)
    chosen = live.provider_name
    return chosen is not None and names.provider_manager(chosen) in live.reporters()


def select(deployment: Object, surroundings: Surroundings, *, valid: bool) -> Selection:
    """Return core's part in the choice of a provider.

    A chosen provider stays chosen if its registration is removed. It is not replaced by a provider that is not
    registered, nor while the spec is invalid: either would delete a model that serves. In both cases core does not
    release its choice, because no provider would reconcile the model that serves.
    """
    live = LiveModelDeployment(deployment)
    if live.requested_provider:
        return _select_requested(live, live.requested_provider, surroundings, valid=valid)
    current, own_choice = live.provider_name, _written(live.provider)
    condition_now = live.condition(reasons.PROVIDER_SELECTED)
    if own_choice and (condition_now or {}).get("reason") == "ExplicitlySelected":
        # The name was removed from the spec. Core's choice stays until the selector has taken it over. Otherwise the
        # selector would not know which provider to keep (contract §5).
        return Selection(
            own_choice, without_time(condition_now), f"Waiting for provider {current} to report status"
        )
    if surroundings.selector:
        return Selection(own_choice, without_time(_shared_with_selector(deployment)), WAITING)
    if current and not own_choice and not _shared_with_selector(deployment):
        return Selection(None, None, WAITING)
    holder = handover.in_charge(deployment)
    note = f". Provider {holder} keeps the model" if holder else ""
    return Selection(own_choice, _selected(live, False, "NoSelector", NO_SELECTOR + note), NO_SELECTOR)


def _select_requested(
    live: LiveModelDeployment, requested: str, surroundings: Surroundings, *, valid: bool
) -> Selection:
    # `in_charge` also finds the provider of an emptied status. A provider that holds the model is not new.
    own_choice, is_new = _written(live.provider), handover.in_charge(live.obj) != requested
    if is_new and requested not in surroundings.registered:
        message = not_registered(requested, surroundings.registered)
        return Selection(own_choice, _selected(live, False, "ProviderNotRegistered", message), message)
    if is_new and not valid:
        condition_now = live.condition(reasons.PROVIDER_SELECTED)
        kept = condition_now if own_choice else _shared_with_selector(live.obj)
        return Selection(own_choice, without_time(kept), "Waiting for a valid spec")
    return Selection(
        {"name": requested, "selectedReason": EXPLICIT},
        _selected(live, True, "ExplicitlySelected", f"Provider {requested} explicitly selected"),
        f"Waiting for provider {requested} to report status",
    )


def _selected(live: LiveModelDeployment, status: bool, reason: str, message: str) -> Condition:
    return condition(reasons.PROVIDER_SELECTED, status, reason, message, generation=live.generation)


def not_registered(name: str, registered: Collection[str]) -> str:
    """Return the message for a provider that is not registered. It lists the registered ones and a remedy."""
    listed = ", ".join(sorted(registered)) or "none"
    choose = "name one of these, or " if registered else ""
    return (
        f"Provider '{name}' is not registered (registered: {listed}): {choose}ask an administrator to install it; "
        "kubefoundry provider list shows all"
    )


def _written(chosen: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the current provider fields if core wrote them, otherwise None."""
    if chosen.get("name") and chosen.get("selectedReason") == EXPLICIT:
        return {"name": chosen["name"], "selectedReason": EXPLICIT}
    return None


def _shared_with_selector(deployment: Object) -> Condition | None:
    """Return `ProviderSelected` if core has written it and the selector still owns a part, otherwise None.

    If core released its part, a condition without a reason would stay, and the API server would refuse all further
    writes. So core keeps the condition until the selector has taken it over or released it.
    """
    fields: Any = managed_fields.owned(deployment, names.SELECTOR_MANAGER, "status") or {}
    conditions = fields.get("f:status", {}).get("f:conditions", {})
    part = conditions.get(f'k:{{"type":"{reasons.PROVIDER_SELECTED}"}}')
    if part is None or {"f:status", "f:reason", "f:message", "f:lastTransitionTime"} <= part.keys():
        return None
    return LiveModelDeployment(deployment).condition(reasons.PROVIDER_SELECTED)
