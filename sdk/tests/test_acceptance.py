"""An acceptance counts only from the chosen provider, whatever happened to values and owners before (contract §8)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._api import handover
from kubefoundry_sdk._api.managed_fields import HAND_OVER, compact
from kubefoundry_sdk._provider.reconcile import release
from kubefoundry_sdk._provider.reconcile.handover import waiting
from kubefoundry_sdk._runtime.status import owned_conditions
from support.plans import provider
from support.status_ownership import OwnedConditions

PROVIDERS = ("old", "new", "third")
MANAGERS = tuple(f"{name}-provider" for name in PROVIDERS)
OLD = MANAGERS[0]
OURS = provider()
Step = Callable[[OwnedConditions], None]


def compatible(message: str, status: str = "True", generation: int = 2) -> dict[str, Any]:
    reason = "CompatibilityVerified" if status == "True" else "Unsupported"
    return stated("ProviderCompatible", status, reason, message, generation)


def created(message: str, reason: str = "ResourceCreated", generation: int = 2) -> dict[str, Any]:
    return stated("ResourceCreated", str(reason == "ResourceCreated"), reason, message, generation)


def stated(type_: str, status: str, reason: str, message: str, generation: int) -> dict[str, Any]:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
    }


GENERATIONS = st.sampled_from((1, 2))
MESSAGES = st.sampled_from(("same words", "other words"))
CONDITIONS = st.tuples(
    st.builds(compatible, MESSAGES, st.sampled_from(("True", "False")), GENERATIONS),
    st.builds(
        created,
        MESSAGES,
        st.sampled_from(("ResourceCreated", "WaitingForCleanup", "ApplyRejected")),
        GENERATIONS,
    ),
)
STATEMENTS = CONDITIONS.flatmap(lambda both: st.sampled_from([both, both[:1], both[1:], ()]))


def restored(state: OwnedConditions) -> None:
    """A restore tool applies the status as it was exported."""
    state.apply("restore", *[dict(item) for item in state.values.values()])


APPLIES = st.builds(
    lambda manager, statement: lambda state: state.apply(manager, *statement),
    st.sampled_from(MANAGERS),
    STATEMENTS,
)
FORCES = st.builds(lambda statement: lambda state: state.apply("admin", *statement), STATEMENTS)
EDITS = st.builds(
    lambda type_, field, value: lambda state: state.update("kubectl-edit", type_, field, value),
    st.sampled_from(sorted(HAND_OVER)),
    st.sampled_from(("status", "message")),
    st.sampled_from(("True", "False", "by hand")),
)
LOSSES = st.one_of(
    st.just(OwnedConditions.reset),
    st.just(restored),
    st.builds(lambda manager: lambda state: state.forget(manager), st.sampled_from(MANAGERS)),
)
STEPS: st.SearchStrategy[list[Step]] = st.lists(st.one_of(APPLIES, FORCES, EDITS, LOSSES), max_size=8)


@given(STEPS, st.sampled_from((None, *PROVIDERS)))
def test_acceptance_is_the_chosen_providers_last_statement(steps: list[Step], chosen: str | None) -> None:
    state = OwnedConditions()
    for step in steps:
        step(state)
    state.chosen = chosen

    accepted = handover.accepted(state.object())

    if accepted:
        written = state.written[f"{chosen}-provider"]
        assert {type_: state.values[type_] for type_ in HAND_OVER} == {
            type_: written[type_] for type_ in HAND_OVER
        }


@given(STEPS)
def test_chosen_provider_is_heard_after_any_history(steps: list[Step]) -> None:
    state = OwnedConditions()
    for step in steps:
        step(state)
    state.chosen = "new"
    # The old provider's turn, which removes conditions that others share, and then the chosen provider's.
    for type_ in release.shared(state.object(), OLD, HAND_OVER):
        state.values.pop(type_, None)
        for fields in state.owners.values():
            fields -= {field for field in fields if field[0] == type_}
    state.apply(OLD)

    state.apply(MANAGERS[1], compatible("fits"), created("waits", "WaitingForCleanup"))

    assert handover.accepted(state.object())
    assert release.obstacle(state.object(), OLD) is None


@given(STEPS)
def test_released_condition_leaves_no_share_of_ours(steps: list[Step]) -> None:
    state = OwnedConditions()
    for step in steps:
        step(state)
    state.chosen = "new"
    live = state.object()

    kept = owned_conditions(live, OLD) - release.shared(live, OLD, HAND_OVER)

    for type_ in kept & state.values.keys():
        owners = {manager for manager, fields in state.owners.items() if type_ in dict(fields)}
        assert owners == {OLD} or handover.states(live, "new", type_)


OUR_CREATED = st.sampled_from(
    [
        created(release.created_message(OURS, "m")),
        created(f"{release.created_message(OURS, 'm')}; admission changed spec.image"),
        created("Adopted Engine 'm'"),
        *(
            created(str(waiting(holders, 60.0).message), "WaitingForCleanup")
            for holders in (["x"], ["x", "y"])
        ),
    ]
)


@given(OUR_CREATED, st.lists(st.sampled_from((*MANAGERS, "before-first-apply", "restore"))), st.booleans())
def test_own_words_never_release_under_forged_ownership(
    ours: dict[str, Any], forged: list[str], reset: bool
) -> None:
    state = OwnedConditions()
    state.apply(OLD, compatible(f"{release.compatible_message(OURS)}. A note"), ours)
    if reset:
        state.reset()
    for manager in forged:
        state.forge(manager)
    state.chosen = "new"
    live = state.object()

    assert release.obstacle(live, OLD, has_our_messages=release.repeats_our_messages(live, OURS)) is not None


@pytest.mark.parametrize("title", [OURS.title, f"{OURS.title} 2", "Another"])
@pytest.mark.parametrize("holders", [[OURS.name], ["x", OURS.name]])
def test_acceptance_of_a_provider_is_heard_whatever_its_title(title: str, holders: list[str]) -> None:
    successor = replace(OURS, title=title)
    state = OwnedConditions()
    state.apply(
        OLD, compatible(release.compatible_message(OURS)), created(release.created_message(OURS, "m"))
    )
    state.chosen = "new"
    state.apply(OLD)
    state.apply(
        MANAGERS[1],
        compatible(release.compatible_message(successor)),
        created(str(waiting(holders, 60.0).message), "WaitingForCleanup"),
    )
    live = state.object()

    assert release.obstacle(live, OLD, has_our_messages=release.repeats_our_messages(live, OURS)) is None


@given(STEPS, st.sampled_from(PROVIDERS))
def test_store_keeps_the_evidence_of_an_acceptance(steps: list[Step], chosen: str) -> None:
    state = OwnedConditions()
    for step in steps:
        step(state)
    state.chosen = chosen
    live = state.object()
    kept = copy.deepcopy(live)
    kept["metadata"]["managedFields"] = compact(live["metadata"]["managedFields"], frozenset({"own"}))

    assert handover.accepted(kept) == handover.accepted(live)
    assert release.shared(kept, OLD, HAND_OVER) == release.shared(live, OLD, HAND_OVER)
