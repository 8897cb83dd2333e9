"""The engine of a ModelDeployment: the one that the spec names, otherwise the one that was selected (contract §5)."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from typing import Any

from kubefoundry_sdk._api import handover, managed_fields, names, validation
from kubefoundry_sdk._api.engine_args import ENGINES
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._api.untrusted import mapping, part


def effective_engine(deployment: Object) -> str | None:
    """Return the engine that runs the model: the spec's, else the selected one. None if none is selected yet."""
    live = LiveModelDeployment(deployment)
    if live.requested_engine:
        return live.requested_engine
    selected = live.provider.get("engine")
    return selected if selected in ENGINES and not _is_of_another(live) else None


def _is_of_another(live: LiveModelDeployment) -> bool:
    """Check whether only providers state the selected engine that must not decide on it.

    The chosen provider decides if it holds the model. Before, the providers that hold it state which engine serves. A
    provider that was chosen in between, and is not any more, leaves its engine in the status for a moment.
    """
    managers, chosen = engine_owners(live.obj), live.provider_name
    stating = names.providers_of(managers)
    if chosen is None or not stating or len(stating) < len(managers):
        return False
    held_by = handover.holders(live.obj)
    deciding = {chosen} if chosen in held_by else {chosen, *held_by}
    return deciding.isdisjoint(stating)


def engine_owners(deployment: Object) -> set[str]:
    """Return all field managers that own `status.provider.engine`."""
    return managed_fields.owners(deployment, "status", "provider", "engine")


def states_engine(deployment: Object, provider: str) -> bool:
    """Check whether the provider's last report is about the engine in `status.provider.engine`."""
    return names.provider_manager(provider) in engine_owners(deployment)


def engine_for(deployment: Object, provider: str, supported: Mapping[str, Collection[str]]) -> str | None:
    """Return the engine for a provider that the user named, or that a selector chose without an engine.

    The effective engine stays if the provider holds the model, or if it supports the engine and the engine can run
    the spec. Otherwise it is the first one that fits.

    Args:
        deployment: A ModelDeployment with a valid spec.
        provider: The provider, which need not be in the status yet.
        supported: The engines of each registered provider.

    Returns:
        The engine. None if none fits, or if a provider that holds the model has to report which one serves.
    """
    live = LiveModelDeployment(deployment)
    if live.requested_engine:
        return live.requested_engine
    if unreported_by(deployment, provider, supported):
        return None
    current, spec = effective_engine(deployment), deployment.get("spec") or {}
    if current and provider in handover.holders(deployment):
        return current
    fitting = supported.get(provider, ())
    if current and current in fitting and not problem_with(spec, current):
        return current
    return first_engine(spec, fitting)


def unreported_by(deployment: Object, provider: str, registered: Container[str]) -> list[str]:
    """Return the providers of which one has yet to report the engine that serves; empty if that is not waited for.

    Only a provider that holds the model knows its engine. If it is not registered any more, nobody will report it.

    Args:
        deployment: A ModelDeployment.
        provider: The provider that is chosen now. If the status names another one that holds nothing, the engine in
            the status was selected for that one, and none of it serves unless a provider that holds the model
            states the same engine.
        registered: The names of the registered providers.
    """
    live, held_by = LiveModelDeployment(deployment), handover.holders(deployment)
    serving = [provider] if provider in held_by else held_by
    is_of_serving = live.provider_name in (None, provider, *serving) or any(
        states_engine(deployment, name) for name in serving
    )
    if live.requested_engine or (is_of_serving and effective_engine(deployment)):
        return []
    return [name for name in serving if name == provider or name in registered]


def effective_spec(deployment: Object) -> Object:
    """Return the spec with the effective engine; the stored spec itself if there is nothing to add."""
    spec: Object = deployment.get("spec") or {}
    engine = effective_engine(deployment)
    is_stated = LiveModelDeployment(deployment).requested_engine is not None
    return spec if is_stated or engine is None else with_engine(spec, engine)


def with_engine(spec: Mapping[str, Any], engine: str) -> Object:
    """Return a copy of the spec that names the engine."""
    return {**mapping(spec), "engine": {**part(spec, "engine"), "type": engine}}


def problem_with(spec: Mapping[str, Any], engine: str) -> str:
    """Return why the engine cannot run the spec, by the rules of the spec; an empty text if it can.

    Whether a provider supports the engine is not considered.
    """
    problems = validation.validate(with_engine(spec, engine))
    return _reason(problems[0]) if problems else ""


def _reason(problem: validation.Problem) -> str:
    """Return the message of a problem, after the flag if it is about one. Other messages name their field."""
    field = problem.path.removeprefix("spec.")
    return f"{field}: {problem.message}" if field.startswith("engine.") else problem.message


def engine_problems(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return why each engine cannot run the spec (`problem_with`), in the order of preference."""
    return {engine: problem_with(spec, engine) for engine in ENGINES}


def first_engine(spec: Mapping[str, Any], supported: Container[str]) -> str | None:
    """Return the first engine in the order of preference that is supported and can run the spec, or None."""
    candidates = (engine for engine in ENGINES if engine in supported)
    return next((engine for engine in candidates if not problem_with(spec, engine)), None)


def no_engine_text(spec: Mapping[str, Any], supported: Container[str]) -> str:
    """Return why no engine fits, one clause for each engine that is supported."""
    clauses = [f"{engine}: {problem_with(spec, engine)}" for engine in ENGINES if engine in supported]
    return "; ".join(clauses) or "it supports no engine that a ModelDeployment can have"
