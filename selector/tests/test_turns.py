"""Whose turn a selection is: core's, another selector's or ours, replayed on a ModelDeployment (contract §3)."""

from __future__ import annotations

import pytest

from kubefoundry_selector.candidate import Provider
from kubefoundry_selector.decision import decide, is_undecided
from support.selections import B_SGLANG, GPU_SPEC, SGLANG, A, B, Deployment, offered


def test_let_go_only_when_core_has_taken_over() -> None:
    deployment = Deployment()
    deployment.turn(A, B)
    deployment.users_change({**GPU_SPEC, "provider": {"name": "b"}})

    assert decide(deployment.object, [A, B]) is None
    assert not is_undecided(deployment.object)

    deployment.core_selects("b")
    assert decide(deployment.object, [A, B]) == {}


def test_held_while_the_named_provider_is_not_registered() -> None:
    deployment = Deployment()
    deployment.turn(A)
    deployment.users_change({**GPU_SPEC, "provider": {"name": "x"}})
    deployment.put_condition("ProviderSelected", status="False", reason="ProviderNotRegistered", message="")

    assert decide(deployment.object, [A]) is None

    deployment.users_change(GPU_SPEC)
    deployment.turn(A, offered("b", priority=9))
    assert deployment.provider == "a"


@pytest.mark.parametrize("registered", [[offered("a"), offered("b", priority=9)], [offered("b", priority=9)]])
def test_taken_back_from_core_the_provider_is_kept(registered: list[Provider]) -> None:
    deployment = Deployment()
    deployment.core_selects("a")
    deployment.annotate("1")
    deployment.users_change(GPU_SPEC)

    deployment.turn(*registered)

    assert deployment.status["provider"] == {
        "name": "a",
        "selectedReason": "kept → a (selected before)",
    }
    assert deployment.selected == ("True", "AutoSelected", "Provider a auto-selected")


def test_provider_returned_by_core_is_replaced_if_it_refuses() -> None:
    deployment = Deployment()
    deployment.core_selects("a")
    deployment.users_change(SGLANG)

    deployment.turn(A, B_SGLANG)

    assert deployment.provider == "b"


def test_choice_of_another_selector_is_kept() -> None:
    deployment = Deployment()
    deployment.status["provider"] = {"name": "a", "selectedReason": "cheapest"}

    deployment.turn(offered("a"), offered("b", priority=9))

    assert deployment.status["provider"] == {"name": "a", "selectedReason": "cheapest"}
