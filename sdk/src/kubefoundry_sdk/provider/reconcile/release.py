"""What keeps us serving a ModelDeployment after another provider was chosen (contract §4.4): pure decisions."""

from __future__ import annotations

import json

from kubefoundry_sdk.api import conditions, handover, managed_fields, names, reasons
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.reconcile import dry_run


def waits_for(deployment: Object, manager: str) -> str | None:
    """Why we may not release it yet, for the user; None if we may.

    manager: ours. A condition that we still own says nothing about the chosen provider.
    """
    live = deployment.get("status") or {}
    chosen = (live.get("provider") or {}).get("name")
    if not chosen:
        return "Waiting for a provider to be selected"
    if dry_run.asked(deployment):
        return f"Waiting to hand over to provider {chosen}: annotation {names.DRY_RUN_ANNOTATION} is set"
    ours = conditions_of(deployment, manager)
    spoken = not ours & {reasons.PROVIDER_COMPATIBLE, reasons.RESOURCE_CREATED}
    if spoken and handover.accepted(deployment):
        return None
    generation = deployment["metadata"]["generation"]
    for type_ in (reasons.PROVIDER_COMPATIBLE, reasons.RESOURCE_CREATED):
        said = conditions.find(live.get("conditions"), type_) or {}
        no = said.get("status") == "False" and said.get("reason") != "WaitingForCleanup"
        if no and type_ not in ours and said.get("observedGeneration") == generation:
            return f"Provider {chosen} cannot take over: {said.get('message')}"
    health = conditions.find(live.get("conditions"), reasons.PROVIDER_HEALTHY) or {}
    silent = f": {health.get('message')}" if health.get("status") == "False" else ""
    return f"Waiting for provider {chosen} to confirm that it can take over{silent}"


def speaks(deployment: Object, manager: str) -> bool:
    """Whether we report on the model: we did until now, or nobody has yet."""
    provider = (deployment.get("status") or {}).get("provider") or {}
    return has_reported(deployment, manager) or not provider.get("resourceName")


def has_reported(deployment: Object, manager: str) -> bool:
    """Whether we own the phase."""
    return "f:phase" in _ours(deployment, manager)


def says(deployment: Object, manager: str, type_: str) -> bool:
    """Whether we own the condition of that type, alone or with others."""
    return type_ in conditions_of(deployment, manager)


def conditions_of(deployment: Object, manager: str) -> set[str]:
    """Types of the conditions that we own, in full or in part."""
    owned = _ours(deployment, manager).get("f:conditions", {})
    return {str(json.loads(key[2:]).get("type")) for key in owned if key.startswith("k:")}


def _ours(deployment: Object, manager: str) -> managed_fields.Fields:
    fields: managed_fields.Fields = (managed_fields.owned(deployment, manager, "status") or {}).get(
        "f:status", {}
    )
    return fields
