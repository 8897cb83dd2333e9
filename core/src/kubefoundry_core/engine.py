"""Core's part in the choice of an engine, for a spec that names none: a pure function (contract §5).

Core selects the engine of a provider that the user named, and of one that a selector chose without an engine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kubefoundry_sdk._api import engine_choice, handover, names, reasons
from kubefoundry_sdk._api.conditions import Condition
from kubefoundry_sdk._api.engine_args import ENGINES
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

    `engine_choice.engine_for` has the rule. The engine of a provider that holds the model stays, even without a
    registration. For any other provider, core keeps the current engine until the provider is registered and the spec
    is valid.

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
    current, is_held = engine_choice.effective_engine(deployment), chosen in handover.holders(deployment)
    if current and not (is_own_choice or _is_left_to_core(deployment, is_held=is_held)):
        return None
    if not is_held and (not valid or chosen not in supported):
        return current
    return engine_choice.engine_for(deployment, chosen, supported)


def is_stale(deployment: Object) -> bool:
    """Check whether the status has a selected engine although the spec names one (contract §3)."""
    live = LiveModelDeployment(deployment)
    return live.requested_engine is not None and "engine" in live.provider


def _is_left_to_core(deployment: Object, *, is_held: bool) -> bool:
    """Check whether core owns the selected engine, or only the providers of a hand-over do."""
    managers = engine_choice.engine_owners(deployment)
    is_of_providers = bool(managers) and len(names.providers_of(managers)) == len(managers)
    return names.CORE_MANAGER in managers or (is_of_providers and not is_held)


def naming_engine(
    live: LiveModelDeployment,
    selected_now: Condition | None,
    engine: str | None,
    supported: Mapping[str, Collection[str]],
) -> Condition | None:
    """Return `ProviderSelected`, with the engine that core selected for a provider that the user named, and why.

    Args:
        live: The ModelDeployment.
        selected_now: The condition without the engine, None if core does not own it.
        engine: The engine, None if core selects none.
        supported: The engines of each registered provider.
    """
    provider = live.requested_provider
    if (
        selected_now is None
        or not provider
        or selected_now["reason"] != "ExplicitlySelected"
        or selected_now["observedGeneration"] != live.generation
    ):
        return selected_now
    unreported = engine_choice.unreported_by(live.obj, provider, supported)
    message = f"Provider {provider} explicitly selected"
    if engine:
        message = _with_reason(live, f"{message}, engine {engine} auto-selected", engine, supported)
    elif unreported and provider not in unreported:
        message += (
            f". Waiting for provider {', '.join(unreported)}, which holds the model, to report the engine that "
            "serves: if it does not run, set engine.type"
        )
    return {**selected_now, "message": message}


def _with_reason(
    live: LiveModelDeployment, message: str, engine: str, supported: Mapping[str, Collection[str]]
) -> str:
    """Return the message with the reason why each preferred engine was not selected.

    Keep the reason while the engine stays the same, because the reason explains the choice.
    """
    provider = str(live.requested_provider)
    before = str((live.condition(reasons.PROVIDER_SELECTED) or {}).get("message") or "")
    if before == message or before.startswith(f"{message} ("):
        return before
    if live.provider.get("engine") == engine or provider in handover.holders(live.obj):
        return f"{message} (it was selected before)"
    spec = live.obj.get("spec") or {}
    problems = engine_choice.engine_problems(spec)
    whys = [
        f"{name}: {problems[name] or f'not supported by {provider}'}"
        for name in ENGINES[: ENGINES.index(engine)]
        if problems[name] or name not in supported.get(provider, ())
    ]
    return f"{message} ({'; '.join(whys)})" if whys else message


def unfit_engine(deployment: Object, chosen: str | None) -> str:
    """Return why the engine that a selector wrote cannot run the spec, so that the provider waits; else empty."""
    engine = engine_choice.effective_engine(deployment)
    is_named = LiveModelDeployment(deployment).requested_engine is not None
    if is_named or engine is None or chosen in handover.holders(deployment):
        return ""
    problem = engine_choice.problem_with(deployment.get("spec") or {}, engine)
    return problem and (
        f"Engine {engine}, which was selected with provider {chosen}, cannot run the spec: {problem}. Waiting for "
        "the selector to select another engine: if it does not, set engine.type"
    )
