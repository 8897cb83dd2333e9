"""The engine of a ModelDeployment whose spec names none, as core, the selector and the provider will settle it."""

from __future__ import annotations

from collections.abc import Collection

from kubefoundry_sdk._api import handover
from kubefoundry_sdk._api.engine_choice import effective_engine, first_engine, with_engine
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment


def on_engine(obj: Object, engine: str | None) -> Object:
    """Return the object as its provider reads it: with the effective engine in its spec.

    Args:
        obj: The ModelDeployment.
        engine: The engine to use if the spec names none, None for the selected one.
    """
    engine = LiveModelDeployment(obj).requested_engine or engine or effective_engine(obj)
    return {**obj, "spec": with_engine(obj["spec"], engine)} if engine else obj


def on_first_engine(obj: Object, supported: Collection[str]) -> Object:
    """Return the object on the selected engine, otherwise on the first one that fits, as for a named provider."""
    return on_engine(obj, effective_engine(obj) or first_engine(obj["spec"], supported))


def with_kept_engine(obj: Object, live: Object) -> Object:
    """Return an edited object with the engine that the live one keeps, although its spec no longer names it."""
    engine = effective_engine(live)
    if LiveModelDeployment(obj).requested_engine or engine is None or not handover.holders(live):
        return obj
    status = obj.get("status") or {}
    return {**obj, "status": {**status, "provider": {**(status.get("provider") or {}), "engine": engine}}}
