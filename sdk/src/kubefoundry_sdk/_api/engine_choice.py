"""The engine of a ModelDeployment: the one that the spec names, otherwise the one that was selected (contract §5)."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from kubefoundry_sdk._api import validation
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
    return selected if selected in ENGINES else None


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
    return problems[0].message if problems else ""


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
