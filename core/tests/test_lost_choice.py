"""A status that somebody emptied: the provider whose finalizer holds the model is not a new choice (contract §5)."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_core.decision import EXPLICIT, NO_SELECTOR, Surroundings, decide
from kubefoundry_sdk._api.conditions import find

VALID: dict[str, Any] = {"model": {"id": "org/model"}, "engine": {"type": "llamacpp"}}
INVALID: dict[str, Any] = {"model": {"id": "org/model"}, "engine": {"type": "vllm"}}


def held(spec: dict[str, Any], *holders: str, named: str | None = None) -> dict[str, Any]:
    """Return a model with the finalizers of these providers and without a status."""
    finalizers = [f"kubefoundry.ai/{name}-provider" for name in holders]
    meta = {"name": "m", "namespace": "n", "generation": 3, "finalizers": finalizers}
    return {"metadata": meta, "spec": {**spec, "provider": {"name": named}} if named else spec}


def selected(decided: dict[str, Any]) -> tuple[Any, str]:
    condition = find(decided["conditions"], "ProviderSelected")
    assert condition is not None
    return decided.get("provider"), condition["reason"]


@pytest.mark.parametrize("spec", [VALID, INVALID])
@pytest.mark.parametrize("registered", [{}, {"acme": ""}])
def test_named_holder_is_selected_again(spec: dict[str, Any], registered: dict[str, str]) -> None:
    decided = decide(held(spec, "acme", named="acme"), Surroundings(registered, selector=True))

    assert selected(decided) == ({"name": "acme", "selectedReason": EXPLICIT}, "ExplicitlySelected")


def test_holder_is_not_selected_for_another_unregistered_name() -> None:
    """A tenant may have written the finalizer, and only `spec.provider.name` is checked by policies."""
    decided = decide(held(VALID, "acme", named="beta"), Surroundings({"acme": ""}, selector=True))

    assert selected(decided) == (None, "ProviderNotRegistered")


def test_named_provider_takes_over_from_the_holder() -> None:
    registered = {"acme": "", "beta": ""}

    decided = decide(held(VALID, "acme", named="beta"), Surroundings(registered, selector=True))

    assert selected(decided) == ({"name": "beta", "selectedReason": EXPLICIT}, "ExplicitlySelected")


def test_message_without_selector_names_the_holder() -> None:
    decided = decide(held(VALID, "acme"), Surroundings({"acme": ""}, selector=False))

    condition = find(decided["conditions"], "ProviderSelected") or {}
    assert condition["message"] == f"{NO_SELECTOR}. Provider acme keeps the model"
