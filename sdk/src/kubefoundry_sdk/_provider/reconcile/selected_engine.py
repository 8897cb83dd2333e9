"""The engine of a ModelDeployment whose spec names none: the provider uses the selected one, and restores a lost one.

Once the provider holds the model, it alone knows which engine serves, so nobody else selects one then (contract §5).
"""

from __future__ import annotations

from dataclasses import replace

from kubefoundry_sdk._api import engine_choice, reasons
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider.contract import Deployment, Provider
from kubefoundry_sdk._provider.reconcile import finalizer, preconditions
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.report import Stop
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.manifest import Record


def published(
    live: Object, provider: Provider, record: Record | None, *, is_returned: bool = False
) -> str | None:
    """Return `status.provider.engine` as this provider reports it, None if it reports none.

    Return the selected engine. If the status has lost it, return the engine of the last apply, also while another
    provider is chosen. If the provider holds the model and has applied nothing, return the first engine that fits.

    Args:
        live: The ModelDeployment.
        provider: The provider.
        record: The record of the last apply, None if there is none.
        is_returned: Whether another provider was selected, and this one again before it let go. The selected engine
            may then be that of the other provider, so the engine of the last apply takes precedence.
    """
    model = LiveModelDeployment(live)
    if model.requested_engine:
        return None
    applied = record.engine if record else None
    if model.provider_name not in (None, provider.name):
        # Nobody else knows which engine serves, and the chosen provider is to keep it.
        is_unknown = engine_choice.effective_engine(live) in (None, applied)
        return applied if is_unknown else None
    is_kept = is_returned and applied and finalizer.has(live, provider.name)
    if not is_kept and (selected := engine_choice.effective_engine(live)):
        return selected
    if applied:
        return applied
    if not finalizer.has(live, provider.name):
        return None
    return engine_choice.first_engine(live.get("spec") or {}, provider.capabilities.engines)


def restored(context: Context, deployment: Deployment, upstream: Object | None) -> str | None:
    """Return the engine of a restored upstream object that was applied for this spec, None if there is none.

    A backup restores no status, so another engine may be selected by now. With that, the object that serves would be
    a conflict, and with its own engine it is adopted.
    """
    if upstream is None or not preconditions.is_restored(context, deployment, upstream):
        return None
    record = manifest.applied(upstream)
    engine = record.engine if record else None
    if engine is None:
        return None
    spec = engine_choice.with_engine(deployment.raw_spec, engine)
    return (
        engine if preconditions.is_adoptable(context, replace(deployment, raw_spec=spec), upstream) else None
    )


def obstacle(live: Object, provider: Provider, engine: str | None, problem: str) -> Stop | None:
    """Return why the provider cannot run the spec with any engine that it may get, None if it can.

    Args:
        live: A ModelDeployment whose spec names no engine.
        provider: The provider.
        engine: The selected engine, None if there is none yet.
        problem: Why that engine cannot run the spec; empty if it can.
    """
    spec, supported = live.get("spec") or {}, provider.capabilities.engines
    if engine and finalizer.has(live, provider.name):
        if not problem:
            return None
        message = (
            f"{problem}. Engine {engine} was selected for this model and stays: revert that edit, or set engine.type "
            "to another engine"
        )
    elif engine_choice.first_engine(spec, supported) is None:
        why = engine_choice.no_engine_text(spec, supported)
        message = (
            f"{provider.title} has no engine for this spec: {why}. Change the spec, or name another provider"
        )
    else:
        return None
    return Stop(reasons.PROVIDER_COMPATIBLE, "Unsupported", message, failed=True)
