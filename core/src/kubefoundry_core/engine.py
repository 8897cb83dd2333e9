"""Core's part in the choice of an engine, for a spec that names none: a pure function (contract §5).

Core selects the engine of a provider that the user named, and of one that a selector chose without an engine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kubefoundry_sdk._api import engine_choice, handover, managed_fields, names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment


def selected(
    deployment: Object,
    chosen: str | None,
    supported: Mapping[str, Collection[str]],
    *,
    is_own_choice: bool,
    valid: bool,
) -> str | None:
    """Return `status.provider.engine` as core has to own it, None if core owns none.

    The selected engine stays while the provider holds the model, whatever happens to its registration. Before that,
    another one is selected if a valid edit requires it. A provider that holds the model restores an engine that the
    status has lost, because only that provider knows which one serves.

    Args:
        deployment: The ModelDeployment.
        chosen: The chosen provider, None if none is chosen.
        supported: The engines of each registered provider.
        is_own_choice: Whether core owns the choice of the provider.
        valid: Whether the spec is valid.
    """
    live = LiveModelDeployment(deployment)
    if live.requested_engine or not chosen:
        return None
    current = engine_choice.effective_engine(deployment)
    if current and not (is_own_choice or _owns(deployment)):
        return None
    is_held = chosen in handover.holders(deployment)
    if is_held and is_own_choice and live.provider_name != chosen:
        # The user names the provider that serves again. The selected engine is that of the other one.
        return None
    if is_held or not valid or chosen not in supported:
        return current
    spec: Mapping[str, Any] = deployment.get("spec") or {}
    if current and current in supported[chosen] and not engine_choice.problem_with(spec, current):
        return current
    return engine_choice.first_engine(spec, supported[chosen])


def _owns(deployment: Object) -> bool:
    fields: Any = managed_fields.owned(deployment, names.CORE_MANAGER, "status") or {}
    return "f:engine" in fields.get("f:status", {}).get("f:provider", {})
