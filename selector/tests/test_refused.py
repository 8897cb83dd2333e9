"""A provider that refuses what it was selected for, replayed on a ModelDeployment (contract §5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_selector.memory import quoted
from support.selections import B_SGLANG, MORE_GPUS, SGLANG, A, B, Deployment, offered


def test_refused_before_anything_was_created_goes_to_another() -> None:
    deployment = Deployment()
    deployment.turn(A, B)
    deployment.provider_refuses("a", "A cannot do that")

    assert deployment.turn(A, B) == "Normal ProviderSelected: Selected provider 'b': always → b"
    assert deployment.selected[2] == "Provider b auto-selected; a refused it: A cannot do that"


def test_model_refused_by_all_stays_with_the_last() -> None:
    deployment = Deployment()
    deployment.turn(A, B)
    deployment.provider_refuses("a", "A cannot do that")
    deployment.turn(A, B)
    deployment.provider_refuses("b", "B neither")

    reported = deployment.turn(A, B)

    assert (
        reported is not None
        and "a refused it: A cannot do that; b refused it: B neither. Change the spec" in reported
    )
    assert deployment.provider == "b"
    assert deployment.turn(A, B) is None
    assert deployment.provider == "b"

    deployment.users_change(MORE_GPUS)
    deployment.turn(A, B)
    assert (deployment.provider, deployment.selected) == (
        "b",
        ("True", "AutoSelected", "Provider b auto-selected"),
    )


def test_predecessors_refusal_is_not_the_successors() -> None:
    deployment = Deployment()
    deployment.turn(A, B, offered("c", priority=-1))
    deployment.provider_refuses("a", "A cannot do that")
    deployment.turn(A, B, offered("c", priority=-1))

    deployment.turn(A, B, offered("c", priority=-1))

    assert deployment.provider == "b"


@pytest.mark.parametrize("created", ["resourceName", "condition", "older"])
def test_refusal_after_acceptance_moves_no_model(created: str) -> None:
    deployment = Deployment()
    deployment.turn(A, B)
    deployment.provider_refuses("a", "A cannot do that")
    if created == "resourceName":
        deployment.status["provider"]["resourceName"] = "m"
    elif created == "condition":
        deployment.put_condition("ResourceCreated", status="True")
    else:
        deployment.condition("ProviderCompatible")["observedGeneration"] = 0

    deployment.turn(A, B)

    assert deployment.provider == "a"


def held_by(deployment: Deployment, *providers: str) -> None:
    """The first one serves: it has published what it made."""
    deployment.object["metadata"]["finalizers"] = [f"kubefoundry.ai/{name}-provider" for name in providers]
    deployment.status["provider"]["resourceName"] = "m"
    deployment.put_condition("ResourceCreated", status="True")


def serving_a_and_refused_by_b(*, holds: tuple[str, ...] = ("a",)) -> Deployment:
    """A serves, the user asks for what it cannot do, B is chosen and refuses."""
    deployment = Deployment()
    deployment.turn(A, B_SGLANG)
    held_by(deployment, *holds)
    deployment.users_change(SGLANG)
    deployment.turn(A, B_SGLANG)
    assert deployment.provider == "b"
    held_by(deployment, *holds)
    deployment.provider_refuses("b", "B cannot do that")
    return deployment


def test_refusing_successor_leaves_the_model_in_place() -> None:
    deployment = serving_a_and_refused_by_b()

    reported = deployment.turn(A, B_SGLANG)

    assert reported is not None and "b refused it" in reported
    assert reported.endswith(". Provider a keeps the model")
    assert deployment.provider == "a"
    assert deployment.turn(A, B_SGLANG) is None
    assert deployment.provider == "a"


def test_another_successor_is_asked_first() -> None:
    deployment = serving_a_and_refused_by_b()

    deployment.turn(A, B_SGLANG, offered("c", engines=["sglang"], priority=-1))

    assert deployment.provider == "c"


def test_successor_with_objects_keeps_the_model() -> None:
    deployment = serving_a_and_refused_by_b(holds=("a", "b"))

    deployment.turn(A, B_SGLANG)

    assert deployment.provider == "b"


@given(
    st.text(max_size=40) | st.sampled_from(["x; b refused it: y", "a. Change the spec", "[left out: b]", "."])
)
def test_all_words_are_kept_and_the_status_settles(words: str) -> None:
    deployment = Deployment()
    deployment.turn(B, A)
    deployment.provider_refuses("a", words)
    deployment.turn(B, A)
    deployment.provider_refuses("b", "B neither")

    reported = deployment.turn(B, A)

    assert reported is not None
    kept = quoted(words)
    assert (
        f"a refused it: {kept}" if kept else "a refused it"
    ) in reported and "b refused it: B neither" in reported
    assert [deployment.turn(B, A) for _ in range(3)] == [None] * 3
