"""When a selection is made and when it is kept, replayed on a ModelDeployment (contract §5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_selector.candidate import Provider
from kubefoundry_selector.decision import decide, is_undecided
from support.selections import B_SGLANG, GPU_SPEC, MORE_GPUS, SGLANG, A, B, Deployment, offered


def test_first_selection_is_written_and_reported() -> None:
    deployment = Deployment()

    decided = decide(deployment.object, [A, B])

    assert decided == {
        "provider": {"name": "a", "selectedReason": "always → a"},
        "selection": {"reselect": ""},
        "conditions": [
            {
                "type": "ProviderSelected",
                "status": "True",
                "reason": "AutoSelected",
                "message": "Provider a auto-selected",
                "observedGeneration": 1,
            }
        ],
    }
    assert deployment.turn(A, B) == "Normal ProviderSelected: Selected provider 'a': always → a"
    assert deployment.turn(A, B) is None


def test_none_is_found_until_a_provider_comes() -> None:
    deployment = Deployment(SGLANG)

    reported = deployment.turn(A)

    assert reported == (
        "Warning NoMatchingProvider: No provider matches engine=sglang, mode=aggregated, gpu=1: "
        "a does not support sglang engine. Change the spec, or name a provider in spec.provider.name"
    )
    assert deployment.provider is None
    assert deployment.selected == ("False", "NoMatchingProvider", reported.split(": ", 1)[1])
    assert is_undecided(deployment.object)
    assert deployment.turn(A, B_SGLANG) == "Normal ProviderSelected: Selected provider 'b': always → b"
    assert not is_undecided(deployment.object)


@pytest.mark.parametrize(
    "change",
    [
        {"deletionTimestamp": "2026-02-04T10:00:00Z"},
        {"annotations": {"kubefoundry.ai/reconcile-paused": "true"}},
        {"generation": 2},
    ],
    ids=["being deleted", "paused", "not yet validated"],
)
def test_not_yet_or_no_more(change: dict[str, Any]) -> None:
    deployment = Deployment()
    deployment.object["metadata"].update(change)

    assert decide(deployment.object, [A]) is None


def test_selector_ignores_invalid_spec() -> None:
    deployment = Deployment()
    deployment.put_condition("Validated", status="False", observedGeneration=1)

    assert decide(deployment.object, [A]) is None


@pytest.mark.parametrize(
    "registered",
    [
        [offered("a"), offered("b", priority=9)],
        [replace(A, not_ready=""), B],
        [replace(A, heartbeat_fresh=False), B],
        [replace(A, engines=frozenset()), B],
        [replace(A, rules=()), B],
        [B],
        [],
    ],
    ids=["priority", "not ready", "no heartbeat", "capabilities edited", "rules edited", "gone", "all gone"],
)
def test_kept_whatever_happens_to_providers(registered: list[Provider]) -> None:
    deployment = Deployment()
    deployment.turn(A, B)
    before = decide(deployment.object, [A, B])

    assert decide(deployment.object, registered) == before


def test_users_change_that_the_provider_can_do_keeps_it() -> None:
    deployment = Deployment()
    deployment.turn(offered("a"))
    deployment.users_change(MORE_GPUS)

    assert deployment.turn(offered("a"), offered("b", priority=9)) is None
    assert deployment.provider == "a"
    assert deployment.condition("ProviderSelected")["observedGeneration"] == 2


def test_users_change_that_the_provider_cannot_do_selects_again() -> None:
    deployment = Deployment()
    deployment.turn(A, B_SGLANG)
    deployment.users_change(SGLANG)

    assert deployment.turn(A, B_SGLANG) == "Normal ProviderSelected: Selected provider 'b': always → b"


def test_model_stays_without_a_successor_and_reports_it() -> None:
    deployment = Deployment()
    deployment.turn(A, B)
    deployment.users_change(SGLANG)

    reported = deployment.turn(A, B)

    assert reported is not None and reported.startswith(
        "Warning NoMatchingProvider: No provider matches engine=sglang"
    )
    assert reported.endswith(". Provider a keeps the model")
    assert deployment.provider == "a"
    assert deployment.selected[0] == "False"
    assert is_undecided(deployment.object)


def test_from_there_the_user_can_go_back() -> None:
    deployment = Deployment()
    deployment.turn(offered("a"))
    deployment.users_change(SGLANG)
    deployment.turn(offered("a"))
    deployment.users_change(GPU_SPEC)

    deployment.turn(offered("a"), offered("b", priority=9))

    assert deployment.provider == "a"
    assert deployment.selected == ("True", "AutoSelected", "Provider a auto-selected")


def test_from_there_a_provider_that_comes_is_chosen() -> None:
    deployment = Deployment()
    deployment.turn(A)
    deployment.users_change(SGLANG)
    deployment.turn(A)

    deployment.turn(A, B_SGLANG)

    assert deployment.provider == "b"
