"""Providers that the creator of a model may not use, replayed on a ModelDeployment (docs/policy.md)."""

from __future__ import annotations

from dataclasses import replace

from kubefoundry_selector.candidate import request
from kubefoundry_selector.decision import decide, is_choice
from kubefoundry_selector.explain import explain
from support.selections import MORE_GPUS, A, B, Deployment

DENIED_A = replace(A, denied="may not be used by user 'u'")
DENIED_B = replace(B, denied="may not be used by user 'u'")


def test_denied_provider_is_not_selected_and_is_recorded() -> None:
    deployment = Deployment()

    reported = deployment.turn(DENIED_A, B)

    assert reported == "Normal ProviderSelected: Selected provider 'b': always → b"
    assert deployment.status["selection"]["denied"] == [{"name": "a", "message": DENIED_A.denied}]


def test_denied_providers_stay_recorded_while_selection_is_kept() -> None:
    deployment = Deployment()
    deployment.turn(DENIED_A, B)
    deployment.users_change(MORE_GPUS)

    deployment.turn(A, B)

    assert deployment.provider == "b"
    assert deployment.status["selection"]["denied"] == [{"name": "a", "message": DENIED_A.denied}]


def test_model_without_permitted_provider_says_whom_to_ask() -> None:
    deployment = Deployment()

    reported = deployment.turn(DENIED_A, DENIED_B)

    assert reported == (
        "Warning NoMatchingProvider: No provider matches engine=vllm, mode=aggregated, gpu=1: "
        "a may not be used by user 'u'; b may not be used by user 'u'. Ask an administrator for permission to use a "
        "provider, or name one that you may use in spec.provider.name"
    )


def test_permission_granted_later_clears_the_record() -> None:
    deployment = Deployment()
    deployment.turn(DENIED_A, DENIED_B)

    deployment.turn(A, DENIED_B)

    assert deployment.provider == "a"
    assert [item["name"] for item in deployment.status["selection"]["denied"]] == ["b"]


def test_answer_to_reselect_is_a_choice_of_the_same_provider() -> None:
    deployment = Deployment()
    deployment.turn(DENIED_A, B)
    kept = decide(deployment.object, [A, B])
    deployment.annotate("again")

    chosen = decide(deployment.object, [B])

    assert kept is not None and not is_choice(deployment.object, kept)
    assert chosen is not None and is_choice(deployment.object, chosen)


def test_explanation_names_the_permission_as_a_check() -> None:
    explanation = explain(request(Deployment().object), [DENIED_A, B])

    [denied, allowed] = explanation.providers
    assert [(item.check, item.text) for item in denied.exclusions] == [("use", DENIED_A.denied)]
    assert allowed.exclusions == ()
