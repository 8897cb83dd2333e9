"""The part of KubeFoundry's core in a test: it chooses the provider and an engine, and accepts the spec."""

from __future__ import annotations

from datetime import datetime

from kubefoundry_sdk._api import reasons
from kubefoundry_sdk._api.conditions import condition, stamp
from kubefoundry_sdk._api.engine_choice import engine_for
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider.contract import Provider


def status_of(deployment: Object, provider: Provider, now: datetime) -> Object:
    """Return the status fields that core has to own of a ModelDeployment that is served by the provider."""
    generation, name = deployment["metadata"]["generation"], provider.name
    selected = f"Provider {name} explicitly selected"
    conditions = [
        condition(
            reasons.VALIDATED, True, "ValidationPassed", "Schema validation passed", generation=generation
        ),
        condition(reasons.PROVIDER_SELECTED, True, "ExplicitlySelected", selected, generation=generation),
    ]
    chosen = {"name": name, "selectedReason": reasons.EXPLICIT_SELECTION}
    is_named = LiveModelDeployment(deployment).requested_engine is not None
    if not is_named and (engine := engine_for(deployment, name, {name: provider.capabilities.engines})):
        chosen["engine"] = engine
    before = LiveModelDeployment(deployment).status.get("conditions")
    return {"provider": chosen, "conditions": stamp(conditions, before, now)}
