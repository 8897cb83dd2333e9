"""A selection that the user asks for again by the annotation, replayed on a ModelDeployment (contract §5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kubefoundry_selector.decision import is_undecided
from support.selections import A, B, Deployment, offered


def test_reselect_with_a_new_value_only() -> None:
    low, high = offered("a"), offered("b", priority=9)
    deployment = Deployment()
    deployment.turn(low)
    deployment.annotate("1")

    assert deployment.turn(low, high) == "Normal ProviderSelected: Selected provider 'b': always → b"
    assert deployment.selected[2] == "Provider b auto-selected"

    higher = offered("a", priority=10)
    deployment.turn(higher, high)
    deployment.annotate(None)
    deployment.turn(higher, high)
    deployment.annotate("1")
    deployment.turn(higher, high)
    assert deployment.provider == "b"

    deployment.annotate("2")
    deployment.turn(higher, high)
    assert deployment.provider == "a"


def test_initial_reselect_value_moves_nothing() -> None:
    deployment = Deployment(annotations={"kubefoundry.ai/reselect": "1"})
    deployment.turn(offered("a"))

    deployment.turn(offered("a"), offered("b", priority=9))

    assert deployment.provider == "a"


def test_reselect_of_the_same_provider_is_reported() -> None:
    deployment = Deployment()
    deployment.turn(A)
    deployment.annotate("1")

    assert deployment.turn(A) == "Normal ProviderSelected: Selected provider 'a': always → a"


def test_reselect_without_candidate_keeps_and_retries() -> None:
    deployment = Deployment()
    deployment.turn(A)
    deployment.annotate("1")

    reported = deployment.turn(replace(A, not_ready=""))

    assert reported is not None and reported.startswith(
        "Warning ReselectFailed: Provider a auto-selected; reselection requested, but: "
    )
    assert deployment.selected[:2] == ("True", "AutoSelected")
    assert is_undecided(deployment.object)
    deployment.turn(replace(A, not_ready=""), B)
    assert deployment.provider == "b"


def test_reselect_forgets_who_refused() -> None:
    deployment = Deployment()
    deployment.turn(A, B)
    deployment.provider_refuses("a", "A cannot do that")
    deployment.turn(A, B)
    deployment.provider_writes("b")
    deployment.condition("ProviderCompatible")["status"] = "True"
    deployment.annotate("1")

    deployment.turn(A, B)

    assert deployment.provider == "a"
    assert deployment.selected[2] == "Provider a auto-selected"
    assert deployment.status["selection"] == {"reselect": "1"}


@pytest.mark.parametrize(
    ("message", "selection"),
    [
        pytest.param("Provider a auto-selected", {"reselect": "1"}, id="another selector that remembers"),
        pytest.param("cheapest", None, id="another selector that does not"),
        pytest.param("Provider a auto-selected [reselect: 1]", None, id="an earlier release"),
    ],
)
def test_selection_of_another_selector_is_kept(message: str, selection: dict[str, str] | None) -> None:
    deployment = Deployment(annotations={"kubefoundry.ai/reselect": "1"})
    deployment.status["provider"] = {"name": "a", "selectedReason": "cheapest"}
    deployment.status["selection"] = selection
    deployment.put_condition(
        "ProviderSelected", status="True", reason="AutoSelected", message=message, observedGeneration=1
    )

    deployment.turn(A, offered("b", priority=9))

    assert deployment.provider == "a"
    assert deployment.status["selection"] == {"reselect": "1"}
    deployment.annotate("2")
    deployment.turn(A, offered("b", priority=9))
    assert deployment.provider == "b"
