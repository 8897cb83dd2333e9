"""A status that somebody emptied: the provider whose finalizer holds the model stays selected (contract §5)."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from kubefoundry_selector.decision import decide, is_choice
from support.selections import B_SGLANG, MORE_GPUS, SGLANG, A, B, Deployment, offered

KEPT = "Normal ProviderSelected: Selected provider 'b': kept → b (selected before)"
DENIED_B = replace(B, denied="may not be used by user 'u'")
DENIED_C = replace(offered("c"), denied="may not be used by user 'u'")


def emptied(*holders: str) -> Deployment:
    """Return a model with the finalizers of these providers, and a status that only has core's verdict."""
    deployment = Deployment(finalizers=[f"kubefoundry.ai/{name}-provider" for name in holders])
    deployment.users_change(MORE_GPUS)
    return deployment


def test_holder_is_selected_again_whatever_its_priority() -> None:
    deployment = emptied("b")

    assert deployment.turn(A, B) == KEPT
    assert deployment.selected == ("True", "AutoSelected", "Provider b auto-selected")


@pytest.mark.parametrize("holders", [("a", "b"), ("b", "a")])
def test_none_of_several_holders_is_selected_without_a_report(holders: tuple[str, ...]) -> None:
    deployment = emptied(*holders)

    reported = deployment.turn(A, B)

    assert deployment.provider is None
    assert deployment.selected[:2] == ("False", "NoHealthyProviders")
    assert reported is not None and f"each of the providers {', '.join(holders)} has a finalizer" in reported


def reports(deployment: Deployment, provider: str, *fields: str) -> None:
    """Make the provider the owner of these fields of the status."""
    deployment.object["metadata"].setdefault("managedFields", []).append(
        {
            "manager": f"{provider}-provider",
            "operation": "Apply",
            "subresource": "status",
            "fieldsV1": {"f:status": {f"f:{field}": {} for field in fields}},
        }
    )


FORGED = [tuple(chain) for count in (1, 2) for chain in itertools.permutations(("a", "c", "ghost"), count)]


@pytest.mark.parametrize("lost", [None, "", "{}"])
@pytest.mark.parametrize("left", [("phase", "message"), ("provider",), ("endpoint",), ("conditions",)])
@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("forged", FORGED)
def test_forged_finalizer_moves_no_model_that_is_reported(
    forged: tuple[str, ...], at: int, left: tuple[str, ...], lost: str | None
) -> None:
    """The forged finalizers are before and after the holder's, and are those of better providers."""
    deployment = emptied(*forged[:at], "b", *forged[at:])
    reports(deployment, "b", *left)
    if lost is not None:
        deployment.status["provider"] = {} if lost else {"name": ""}

    assert deployment.turn(A, B, offered("c", priority=2)) == KEPT


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("forged", FORGED)
def test_model_waits_for_the_report_that_proves_a_holder(forged: tuple[str, ...], at: int) -> None:
    deployment = emptied(*forged[:at], "b", *forged[at:])
    registered = (A, B, offered("c", priority=2))

    deployment.turn(*registered)

    assert deployment.provider == ("b" if forged == ("ghost",) else None)
    reports(deployment, "b", "phase")
    deployment.turn(*registered)
    assert deployment.provider == "b"
    assert deployment.selected[:2] == ("True", "AutoSelected")


@pytest.mark.parametrize("left", ["phase", "conditions"])
def test_provider_that_reports_needs_no_finalizer(left: str) -> None:
    deployment = emptied("a")
    reports(deployment, "b", left)

    assert deployment.turn(A, B) == KEPT


def test_wait_for_a_report_follows_no_earlier_reselect() -> None:
    deployment = emptied("a", "b")
    deployment.annotate("1")

    deployment.turn(A, B)
    reports(deployment, "b", "phase")
    deployment.turn(A, B)

    assert deployment.provider == "b"


@pytest.mark.parametrize("state", ["reconcile-paused", "deleted"])
def test_no_holder_is_restored_without_a_report(state: str) -> None:
    deployment = emptied("a", "b")
    if state == "deleted":
        deployment.object["metadata"]["deletionTimestamp"] = "2026-03-01T00:00:00Z"
    else:
        deployment.object["metadata"]["annotations"] = {f"kubefoundry.ai/{state}": "true"}

    assert decide(deployment.object, [A, B]) is None


def test_empty_name_is_a_lost_selection() -> None:
    deployment = Deployment(finalizers=["kubefoundry.ai/b-provider"])
    deployment.turn(B)
    deployment.status["provider"]["name"] = ""
    deployment.users_change(MORE_GPUS)

    deployment.turn(A, B)

    assert deployment.provider == "b"


@pytest.mark.parametrize("front", [(), ("b",), ("ghost",), ("b", "ghost"), ("d",)])
@pytest.mark.parametrize("back", [(), ("b",), ("ghost",), ("d",)])
def test_forged_finalizer_hides_no_holder_that_may_return(
    front: tuple[str, ...], back: tuple[str, ...]
) -> None:
    """Provider b is denied, `ghost` is not registered, and d has a finalizer that is forged."""
    deployment = Deployment()
    deployment.turn(offered("c"))
    deployment.object["metadata"]["finalizers"] = [
        f"kubefoundry.ai/{name}-provider" for name in (*front, "c", *back)
    ]
    registered = (offered("a", engines=["vllm", "sglang"]), DENIED_B, offered("c"), offered("d"))
    deployment.users_change(SGLANG)
    deployment.turn(*registered)
    deployment.provider_refuses("a", "A cannot do that")
    reports(deployment, "c", "phase")

    deployment.turn(*registered)

    assert deployment.provider == "c"
    assert deployment.selected[2].endswith(". Provider c keeps the model")


def test_holder_that_cannot_serve_the_spec_is_replaced() -> None:
    deployment = emptied("a")
    deployment.users_change(SGLANG)

    deployment.turn(A, B_SGLANG)

    assert deployment.provider == "b"


def test_holder_keeps_a_model_that_no_provider_can_serve() -> None:
    deployment = emptied("a")
    deployment.users_change(SGLANG)

    reported = deployment.turn(A, B)

    assert deployment.provider == "a"
    assert reported is not None and reported.endswith(". Provider a keeps the model")


@pytest.mark.parametrize("holders", [("b",), ("a", "b")])
def test_denied_holder_is_not_selected_again(holders: tuple[str, ...]) -> None:
    deployment = emptied(*holders)

    deployment.turn(A, DENIED_B)

    assert deployment.provider == "a"


def test_unregistered_holder_is_not_selected_again() -> None:
    deployment = emptied("nobody")

    deployment.turn(A, B)

    assert deployment.provider == "a"


def test_selection_by_a_finalizer_is_a_choice_to_be_checked() -> None:
    deployment = emptied("b")

    decided = decide(deployment.object, [A, B])

    assert decided is not None and is_choice(deployment.object, decided)


def test_forged_finalizer_does_not_bring_a_denied_provider() -> None:
    """Without a candidate, a model goes back to the provider that holds it."""
    deployment = emptied("c")

    reported = deployment.turn(DENIED_B, DENIED_C)

    assert deployment.provider is None
    assert reported is not None and reported.startswith("Warning NoMatchingProvider")


def test_refused_model_is_not_handed_back_to_a_denied_provider() -> None:
    deployment = Deployment()
    deployment.turn(A, DENIED_C)
    deployment.object["metadata"]["finalizers"] = ["kubefoundry.ai/c-provider"]
    deployment.provider_refuses("a", "A cannot do that")

    deployment.turn(A, DENIED_C)

    assert deployment.provider == "a"


@pytest.mark.parametrize("state", ["paused", "deleted", "invalid"])
def test_holder_is_selected_again_while_nothing_can_be_decided(state: str) -> None:
    deployment = emptied("b")
    meta, generation = deployment.object["metadata"], deployment.object["metadata"]["generation"]
    if state == "paused":
        meta["annotations"] = {"kubefoundry.ai/reconcile-paused": "true"}
    elif state == "deleted":
        meta["deletionTimestamp"] = "2026-03-01T00:00:00Z"
    else:
        deployment.put_condition(
            "Validated", status="False", reason="ValidationFailed", observedGeneration=generation
        )

    decided = decide(deployment.object, [A, B])

    assert decided is not None
    assert decided["provider"] == {"name": "b", "selectedReason": "kept → b (selected before)"}
    assert decided["conditions"][0]["observedGeneration"] == 0


def test_restored_selection_is_decided_once_that_is_possible() -> None:
    deployment = emptied("a")
    deployment.users_change(SGLANG)
    deployment.object["metadata"]["annotations"] = {"kubefoundry.ai/reconcile-paused": "true"}
    restored = decide(deployment.object, [A, B_SGLANG])
    assert restored is not None
    deployment.object["status"] |= {name: restored[name] for name in ("provider", "selection")}
    deployment.status["conditions"].extend(restored["conditions"])
    deployment.object["metadata"]["annotations"] = {}

    deployment.turn(A, B_SGLANG)

    assert deployment.provider == "b"


@pytest.mark.parametrize("is_paused", [False, True])
def test_earlier_reselect_is_not_followed_again(is_paused: bool) -> None:
    deployment = emptied("b")
    paused = {"kubefoundry.ai/reconcile-paused": "true"} if is_paused else {}
    deployment.object["metadata"]["annotations"] = {"kubefoundry.ai/reselect": "1", **paused}

    decided = decide(deployment.object, [A, B])

    assert decided is not None and decided["provider"]["name"] == "b"
    assert decided["selection"]["reselect"] == "1"


def test_lost_condition_is_written_again() -> None:
    deployment = Deployment()
    deployment.turn(B)
    deployment.object["metadata"]["annotations"] = {"kubefoundry.ai/reconcile-paused": "true"}
    deployment.status["conditions"] = []

    decided = decide(deployment.object, [A, B])

    assert decided is not None and decided["conditions"][0]["reason"] == "AutoSelected"


def test_memory_outlives_a_lost_condition() -> None:
    deployment = Deployment()
    deployment.annotate("1")
    deployment.turn(B)
    generation = deployment.object["metadata"]["generation"]
    deployment.status["conditions"] = []
    deployment.put_condition("Validated", status="True", observedGeneration=generation)
    deployment.annotate("2")

    deployment.turn(A, B)

    assert deployment.provider == "a"
