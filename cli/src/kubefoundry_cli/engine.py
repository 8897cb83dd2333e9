"""The engine of a ModelDeployment whose spec names none, as core, the selector and the provider will settle it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kubefoundry_cli.failure import Failure
from kubefoundry_sdk._api import handover
from kubefoundry_sdk._api.engine_choice import effective_engine, engine_for, unreported_by, with_engine
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider.write import manifest


def on_engine(obj: Object, engine: str | None) -> Object:
    """Return the object as its provider reads it: with the effective engine in its spec.

    Args:
        obj: The ModelDeployment.
        engine: The engine to use if the spec names none, None for the selected one.
    """
    engine = LiveModelDeployment(obj).requested_engine or engine or effective_engine(obj)
    return {**obj, "spec": with_engine(obj["spec"], engine)} if engine else obj


def on_engine_of(obj: Object, provider: str, supported: Mapping[str, Collection[str]]) -> Object:
    """Return the object on the engine that core gives it for a named provider.

    Args:
        obj: The ModelDeployment.
        provider: The name of the provider.
        supported: The engines of each registered provider.

    Raises:
        Failure: The engine is unknown, because another provider has to report which one serves.
    """
    engine = engine_for(obj, provider, supported)
    if engine is None and (unreported := unreported_by(obj, provider, supported)) not in ([], [provider]):
        raise Failure(
            f"the engine of ModelDeployment '{obj['metadata']['name']}' on provider {provider} is unknown until "
            f"provider {', '.join(unreported)}, which holds the model, has reported the engine that serves: set "
            "engine.type to plan for one"
        )
    return {**obj, "spec": with_engine(obj["spec"], engine)} if engine else _without_engine(obj)


def _without_engine(obj: Object) -> Object:
    """Return the object without an engine that was selected for another provider."""
    status = obj.get("status") or {}
    provider = {key: value for key, value in (status.get("provider") or {}).items() if key != "engine"}
    return {**obj, "status": {**status, "provider": provider}} if status else obj


def on_serving_engine(obj: Object, asked_for: Object, upstream: Object | None) -> Object:
    """Return the object on the engine that its upstream object runs, if only that object shows it.

    The provider restores that engine if the status has lost it, or if a backup has restored the object.

    Args:
        obj: The ModelDeployment, on the engine that is selected for it.
        asked_for: The ModelDeployment with the engine of its spec, if that names one.
        upstream: The upstream object, None if it does not exist.
    """
    if upstream is None or LiveModelDeployment(asked_for).requested_engine:
        return obj
    record = manifest.applied(upstream)
    is_owned = manifest.is_owned_by(upstream, asked_for["metadata"]["uid"])
    if record is None or (is_owned and effective_engine(obj)):
        return obj
    return on_engine(asked_for, record.engine)


def with_kept_engine(obj: Object, live: Object) -> Object:
    """Return an edited object with the engine that the live one keeps, although its spec no longer names it."""
    engine = effective_engine(live)
    if LiveModelDeployment(obj).requested_engine or engine is None or not handover.holders(live):
        return obj
    status = obj.get("status") or {}
    return {**obj, "status": {**status, "provider": {**(status.get("provider") or {}), "engine": engine}}}
