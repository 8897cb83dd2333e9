"""Pure functions: reasons to keep serving a ModelDeployment after another provider was chosen (contract §4.6)."""

from __future__ import annotations

from collections.abc import Collection

from kubefoundry_sdk._api import handover, managed_fields, names, reasons
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.reconcile import dry_run
from kubefoundry_sdk._provider.reconcile.handover import awaited_providers
from kubefoundry_sdk._runtime import status


def obstacle(deployment: Object, manager: str, *, has_our_messages: bool = False) -> str | None:
    """Return the reason why we may not release the ModelDeployment yet, for the user; None if we may.

    Args:
        deployment: The ModelDeployment.
        manager: Our field manager. A condition that we still own was not written by the chosen provider.
        has_our_messages: Whether the conditions have the messages that we write. Tenants can write managedFields, so
            these conditions count as ours, even if another manager seems to own them.
    """
    live = LiveModelDeployment(deployment)
    chosen = live.provider_name
    if not chosen:
        return "Waiting for a provider to be selected"
    if dry_run.is_requested(deployment):
        return f"Waiting to hand over to provider {chosen}: annotation {names.DRY_RUN_ANNOTATION} is set"
    ours = status.owned_conditions(deployment, manager)
    if not ours & managed_fields.HAND_OVER and not has_our_messages and handover.accepted(deployment):
        return None
    for type_ in (reasons.PROVIDER_COMPATIBLE, reasons.RESOURCE_CREATED):
        if type_ not in ours and _is_refused(live, type_) and handover.states(deployment, chosen, type_):
            return f"Provider {chosen} cannot take over: {(live.condition(type_) or {}).get('message')}"
    health = live.condition(reasons.PROVIDER_HEALTHY) or {}
    unhealthy = f": {health.get('message')}" if health.get("status") == "False" else ""
    return f"Waiting for provider {chosen} to confirm that it can take over{unhealthy}"


def _is_refused(live: LiveModelDeployment, type_: str) -> bool:
    """Check whether the condition of that type refuses the current generation."""
    condition = live.condition(type_) or {}
    is_false = condition.get("status") == "False" and condition.get("reason") != "WaitingForCleanup"
    return is_false and condition.get("observedGeneration") == live.generation


def compatible_message(provider: Provider) -> str:
    """Return the beginning of our message in a True `ProviderCompatible`."""
    return f"Configuration compatible with {provider.title}"


def created_message(provider: Provider, name: str) -> str:
    """Return our message in a True `ResourceCreated`."""
    return f"Created {provider.upstream.kind} '{name}'"


def repeats_our_messages(deployment: Object, provider: Provider) -> bool:
    """Check whether the conditions of a hand-over have our messages, even if another manager owns them.

    `ProviderCompatible` names the provider by its title. A successor with the same title, such as a second
    installation, is recognized by `WaitingForCleanup`: it names us as the provider to wait for.
    """
    live = LiveModelDeployment(deployment)
    compatible = str((live.condition(reasons.PROVIDER_COMPATIBLE) or {}).get("message"))
    ours = compatible_message(provider)
    is_ours = compatible == ours or compatible.startswith(f"{ours}. ")
    created = live.condition(reasons.RESOURCE_CREATED) or {}
    return is_ours and not (
        created.get("reason") == "WaitingForCleanup"
        and provider.name in awaited_providers(str(created.get("message")))
    )


def should_report(deployment: Object, manager: str) -> bool:
    """Check whether we report on the model: we did so until now, or no provider does.

    After a reset of managedFields no provider owns its published fields, and the model still has to be observed.
    """
    provider = LiveModelDeployment(deployment).provider
    if has_reported(deployment, manager) or not provider.get("resourceName"):
        return True
    suffix = names.provider_manager("")
    applied = managed_fields.managers(deployment, "status")
    return not any(has_reported(deployment, other) for other in applied if other.endswith(suffix))


def shared(deployment: Object, manager: str, types: Collection[str]) -> set[str]:
    """Return those of our conditions that would stay in the status after we release our part of them.

    They stay if another manager has applied or restored the same values and so owns them, too. Nobody would correct
    them, and readers would take them for conditions of the chosen provider. The chosen provider's own conditions are
    not returned.
    """
    chosen = LiveModelDeployment(deployment).provider_name
    if chosen and names.provider_manager(chosen) == manager:
        chosen = None
    return {
        type_
        for type_ in status.owned_conditions(deployment, manager) & set(types)
        if managed_fields.condition_owners(deployment, type_) - {manager}
        and not (chosen and handover.states(deployment, chosen, type_))
    }


def has_reported(deployment: Object, manager: str) -> bool:
    """Check whether we own the phase."""
    return "f:phase" in _ours(deployment, manager)


def owns_condition(deployment: Object, manager: str, type_: str) -> bool:
    """Check whether we own the condition of that type, alone or with others."""
    return type_ in status.owned_conditions(deployment, manager)


def _ours(deployment: Object, manager: str) -> managed_fields.Fields:
    fields: managed_fields.Fields = (managed_fields.owned(deployment, manager, "status") or {}).get(
        "f:status", {}
    )
    return fields
