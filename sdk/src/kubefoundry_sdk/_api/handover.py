"""How providers signal each other that a ModelDeployment can change hands (contract §8)."""

from __future__ import annotations

import re
from typing import Any, Final

from kubefoundry_sdk._api import managed_fields, names, reasons
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment

_FINALIZER: Final = re.compile(re.escape(names.PREFIX) + r"(?P<provider>.+)-provider")

RESET: Final = "before-first-apply"
"""The manager to which the API server gives all fields of an object without managedFields at its next apply."""

_STATEMENT: Final = frozenset({"f:status", "f:reason", "f:message", "f:observedGeneration"})
"""Fields of a condition that its author has to own. A manager that owns only some of them may be the previous
provider, which keeps fields with equal values until it releases them."""


def holders(deployment: Object) -> list[str]:
    """Return the providers that hold the ModelDeployment by their finalizer: each may have an object that serves."""
    return [name for name in finalizing(deployment) if not planted(deployment, name)]


def in_charge(deployment: Object) -> str | None:
    """Return the chosen provider. If the status has lost it, return the first one that may serve the model."""
    chosen = LiveModelDeployment(deployment).provider_name
    return chosen or next(iter(reporting(deployment) or holders(deployment)), None)


def reporting(deployment: Object) -> list[str]:
    """Return the providers that the status shows to serve the ModelDeployment, the likeliest first.

    They own the phase, or, if none does, the message of `ResourceCreated`, or, if none does, another part of the
    status. Holders come first. A finalizer alone proves less, because a tenant may have written it, even under the
    provider's field manager.
    """
    held, reporters = holders(deployment), names.providers_of(LiveModelDeployment(deployment).reporters())
    owned = {name: _owned_status(deployment, name) for name in reporters}
    phase = [name for name in reporters if "f:phase" in owned[name]]
    # A provider that is gone keeps the values that are equal. The one after it has created its own object.
    created = [
        name
        for name in reporters
        if "f:message" in managed_fields.conditions(owned[name]).get(reasons.RESOURCE_CREATED, {})
    ]
    return sorted(
        phase or created or reporters, key=lambda name: held.index(name) if name in held else len(held)
    )


def _owned_status(deployment: Object, provider: str) -> Object:
    fields = managed_fields.owned(deployment, names.provider_manager(provider), "status") or {}
    owned: Object = fields.get("f:status", {})
    return owned


def finalizing(deployment: Object) -> list[str]:
    """Return the providers that a finalizer names, whoever added it."""
    matches = (_FINALIZER.fullmatch(name) for name in LiveModelDeployment(deployment).finalizers)
    return [match["provider"] for match in matches if match]


def planted(deployment: Object, provider: str) -> bool:
    """Check whether another manager added the provider's finalizer, and the provider never wrote to the object.

    A manifest may contain such a finalizer. The provider does not know of it and never removes it. After a reset of
    managedFields nobody owns the finalizer, or `before-first-apply` does. Neither proves that another manager added
    it.
    """
    manager = names.provider_manager(provider)
    key = f'v:"{names.provider_finalizer(provider)}"'
    entries = deployment["metadata"].get("managedFields") or ()
    adders = {
        entry.get("manager")
        for entry in entries
        if key in managed_fields.finalizers(entry.get("fieldsV1") or {})
    }
    chosen = LiveModelDeployment(deployment).provider_name
    reporters = {entry.get("manager") for entry in entries}
    proves = bool(adders) and not adders & {None, RESET}
    return proves and manager not in reporters and chosen != provider


def states(deployment: Object, provider: str, type_: str) -> bool:
    """Check whether the condition is the provider's own statement: the provider applied all of its current values."""
    fields = managed_fields.owned(deployment, names.provider_manager(provider), "status") or {}
    owned = managed_fields.conditions(fields.get("f:status") or {}).get(type_) or {}
    return owned.keys() >= _STATEMENT


def entry(provider: str, type_: str) -> dict[str, Any]:
    """Return an entry of managedFields that makes the condition the provider's own statement."""
    fields = {name: dict[str, Any]() for name in sorted(_STATEMENT)}
    return {
        "manager": names.provider_manager(provider),
        "operation": "Apply",
        "subresource": "status",
        "fieldsV1": {"f:status": {"f:conditions": {f'k:{{"type":"{type_}"}}': fields}}},
    }


def accepted(deployment: Object) -> bool:
    """Check whether the chosen provider has accepted the ModelDeployment at this generation.

    The provider can serve the model, and the API server has stored its objects or accepted them in a dry run. Only
    the chosen provider's own conditions count: before it reports, they are those of the previous provider, or of
    another manager that wrote the same values.
    """
    live = LiveModelDeployment(deployment)
    chosen = live.provider_name
    if not chosen or not all(states(deployment, chosen, type_) for type_ in managed_fields.HAND_OVER):
        return False
    created = live.condition(reasons.RESOURCE_CREATED) or {}
    return (
        live.is_true(reasons.PROVIDER_COMPATIBLE, generation=live.generation)
        and created.get("observedGeneration") == live.generation
        and (created.get("status") == "True" or created.get("reason") == "WaitingForCleanup")
    )
