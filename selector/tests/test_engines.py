"""A spec without an engine: the selector chooses engine and provider together, and keeps both (contract §5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from random import Random
from typing import Any, Final

import pytest

from kubefoundry_sdk._api.engine_args import ENGINES
from kubefoundry_selector import Choice, keep_or_choose
from kubefoundry_selector.candidate import Provider, Request
from kubefoundry_selector.decision import announcement, decide, is_undecided
from support.sampled_cases import examples
from support.selections import Deployment, created, offering, selection

GPU: Final[dict[str, Any]] = {"model": {"id": "org/model"}, "resources": {"gpu": {"count": 1}}}
CPU: Final[dict[str, Any]] = {"model": {"id": "org/model"}}

CONDITIONS: Final = ("true", "spec.engine.type == 'sglang'", "spec.engine.type != 'vllm'")
"""Conditions of rules that all, one, and some engines match."""

ENGINE_SETS: Final = [set(some) for size in (1, 2) for some in combinations(ENGINES, size)] + [set(ENGINES)]


HISTORIES: Final = examples(400)


def matches(condition: str, engine: str) -> bool:
    return {CONDITIONS[0]: True, CONDITIONS[1]: engine == "sglang", CONDITIONS[2]: engine != "vllm"}[
        condition
    ]


def first_choice(
    spec: dict[str, Any], registered: Sequence[tuple[Provider, str]]
) -> tuple[str | None, str | None]:
    """The design in one place: engines in their order; among providers the highest priority, then the name."""
    for engine in ENGINES if spec is GPU else ("llamacpp",):
        able = [
            (-each.rules[0].priority, each.name)
            for each, condition in registered
            if engine in each.engines and matches(condition, engine)
        ]
        if able:
            return min(able)[1], engine
    return None, None


def registrations() -> Iterator[list[tuple[Provider, str]]]:
    for first, second in product(ENGINE_SETS, repeat=2):
        for one, other in product(CONDITIONS, repeat=2):
            for priority in (0, 5):
                yield [
                    (offering("a", sorted(first), one), one),
                    (offering("b", sorted(second), other, priority), other),
                ]


@pytest.mark.parametrize("spec", [GPU, CPU], ids=["gpu", "cpu"])
def test_first_engine_with_a_provider_is_selected(spec: dict[str, Any]) -> None:
    for registered in registrations():
        deployment = Deployment(spec)

        deployment.turn(*(each for each, _ in registered))

        assert selection(deployment) == first_choice(spec, registered), registered


def test_order_of_registrations_is_irrelevant() -> None:
    for registered in registrations():
        choices = []
        for order in (registered, registered[::-1]):
            deployment = Deployment(GPU)
            deployment.turn(*(each for each, _ in order))
            choices.append(selection(deployment))

        assert choices[0] == choices[1]


EDITS: Final = (GPU, {**GPU, "scaling": {"replicas": 2}}, {**GPU, "resources": {"gpu": {"count": 2}}})


def test_selected_engine_never_changes_by_itself() -> None:
    """Histories of edits, restarts and changed registrations of a model that a provider holds."""
    random, kept = Random(16), 0
    for _ in range(HISTORIES):
        deployment = Deployment(GPU)
        engines = random.choice(ENGINE_SETS)
        deployment.turn(offering("a", sorted(engines)), offering("b", ["vllm"], priority=-5))
        before = selection(deployment)
        created(deployment)
        for _ in range(5):
            if random.random() < 0.5:
                deployment.users_change(random.choice(EDITS))
            others = [
                offering("a", sorted({*engines, *random.choice(ENGINE_SETS)})),
                offering("z", sorted(random.choice(ENGINE_SETS)), priority=random.choice((-1, 50))),
            ]
            random.shuffle(others)
            deployment.turn(*others[: random.choice((1, 2))])
            assert selection(deployment) == before
            kept += 1
    assert kept == 5 * HISTORIES


@pytest.mark.parametrize("engine", ENGINES)
def test_reselect_may_change_the_engine(engine: str) -> None:
    deployment = Deployment(GPU)
    deployment.turn(offering("a", [engine]))
    created(deployment)
    deployment.annotate("1")

    reported = deployment.turn(offering("a", ENGINES))

    assert selection(deployment) == ("a", "vllm")
    chosen = "engine=vllm → a (only vllm provider); engine vllm selected"
    assert reported == f"Normal ProviderSelected: Selected provider 'a': {chosen}"


def test_unsuccessful_reselection_keeps_the_engine() -> None:
    deployment = Deployment(GPU)
    deployment.turn(offering("a", ["trtllm"]))
    created(deployment)
    deployment.annotate("1")

    deployment.turn(replace(offering("a", ENGINES), not_ready=""))

    assert selection(deployment) == ("a", "trtllm")
    assert is_undecided(deployment.object)


def test_engine_in_the_spec_releases_the_selection() -> None:
    deployment = Deployment(GPU)
    deployment.turn(offering("a", ENGINES))
    created(deployment)
    deployment.users_change({**GPU, "engine": {"type": "sglang"}})

    deployment.turn(offering("a", ENGINES))

    assert selection(deployment) == ("a", None)
    assert deployment.selected[2] == "Provider a auto-selected"


def test_lost_engine_is_left_to_the_holding_provider() -> None:
    deployment = Deployment(GPU)
    deployment.turn(offering("a", ["trtllm"]))
    created(deployment)
    deployment.object["status"] = {"conditions": [deployment.condition("Validated")]}

    deployment.turn(offering("a", ENGINES))
    assert selection(deployment) == ("a", None)

    deployment.object["status"]["provider"]["engine"] = "trtllm"
    deployment.turn(offering("a", ENGINES))
    assert selection(deployment) == ("a", "trtllm")


def test_model_goes_back_to_the_engine_that_serves() -> None:
    """Every other provider refuses the new choice: the one that serves knows its engine."""
    deployment = Deployment(GPU)
    deployment.turn(offering("a", ["trtllm"]))
    created(deployment)
    deployment.annotate("1")
    deployment.turn(offering("a", ["trtllm"]), offering("b", ENGINES))
    assert selection(deployment) == ("b", "vllm")
    deployment.provider_refuses("b", "no")
    deployment.turn(offering("a", ["trtllm"]), offering("b", ENGINES))
    assert selection(deployment) == ("b", "sglang")
    deployment.provider_refuses("b", "no")

    deployment.turn(offering("a", ["trtllm"]), offering("b", ENGINES))

    assert selection(deployment) == ("a", None)


def test_reason_names_the_engine_and_the_preferred_ones() -> None:
    deployment = Deployment(CPU)

    deployment.turn(offering("a", ["vllm", "llamacpp"]))

    reason = deployment.object["status"]["provider"]["selectedReason"]
    assert reason == (
        "no GPU requested → a (only CPU provider); engine llamacpp selected ("
        "vllm: vLLM engine requires GPU (set resources.gpu.count > 0); "
        "sglang: SGLang engine requires GPU (set resources.gpu.count > 0); "
        "trtllm: TensorRT-LLM engine requires GPU (set resources.gpu.count > 0))"
    )
    assert deployment.selected[2] == "Provider a auto-selected with engine llamacpp"


def test_engines_without_a_provider_are_named() -> None:
    deployment = Deployment(GPU)

    deployment.turn(offering("a", ["trtllm"]))

    reason = deployment.object["status"]["provider"]["selectedReason"]
    assert reason.endswith("; engine trtllm selected (vllm: no provider; sglang: no provider)")


def test_no_provider_for_any_engine_is_explained() -> None:
    deployment = Deployment(GPU)

    deployment.turn(offering("a", ["other"]))

    assert deployment.selected == (
        "False",
        "NoMatchingProvider",
        "No provider matches engine=vllm, mode=aggregated, gpu=1: a does not support vllm engine. Change the spec, "
        "or name a provider in spec.provider.name. No provider is selected for the engines sglang, trtllm, llamacpp "
        "either",
    )


def test_no_engine_for_the_spec_is_explained() -> None:
    deployment = Deployment({**CPU, "model": {"id": "org/m"}, "engine": {"args": {"hf-repo": "x/y"}}})

    deployment.turn(offering("a", ENGINES))

    status, reason, message = deployment.selected
    assert (status, reason) == ("False", "NoMatchingProvider")
    assert message.startswith("No engine can run the spec: vllm: vLLM engine requires GPU")
    assert message.endswith("set only model.id. Change the spec")


@pytest.mark.parametrize(
    ("outage", "expected"), [("short", (None, None)), ("long", ("b", "sglang")), (None, ("b", "sglang"))]
)
def test_short_outage_of_a_preferred_engine_is_waited_for(
    outage: Any, expected: tuple[str | None, str | None]
) -> None:
    deployment = Deployment(GPU)
    down = offering("a", ["vllm"], not_ready="", outage=outage)

    deployment.turn(down, offering("b", ["sglang"]))

    assert selection(deployment) == expected
    if outage == "short":
        assert deployment.selected[1:] == (
            "NoHealthyProviders",
            "No healthy providers available for engine vllm, which is preferred: a is not ready. Waiting for up to "
            "five minutes; ask an administrator to check that provider's controller and upstream operator, or set "
            "spec.engine.type to sglang",
        )


def test_provider_of_an_earlier_contract_is_left_out() -> None:
    deployment = Deployment(GPU)

    deployment.turn(replace(offering("a", ENGINES), contract=""))

    assert selection(deployment) == (None, None)
    assert "would not find the selected engine" in deployment.selected[2]


def test_providers_only_selector_is_asked_for_each_engine() -> None:
    deployment, asked = Deployment(GPU), list[str]()

    def choose(request: Request, able: Sequence[Provider]) -> Choice | None:
        asked.append(request.engine)
        return Choice("a", "cheapest → a") if request.engine == "trtllm" else None

    decided = keep_or_choose(deployment.object, [offering("a", ENGINES)], choose) or {}

    assert asked == ["vllm", "sglang", "trtllm"]
    assert decided["provider"] == {
        "name": "a",
        "selectedReason": "cheapest → a; engine trtllm selected (vllm: no provider; sglang: no provider)",
        "engine": "trtllm",
    }


def test_selection_without_an_engine_gets_one() -> None:
    """Another selector chose the provider, and core has not filled in the engine yet."""
    deployment = Deployment(GPU)
    deployment.turn(offering("a", ["sglang", "trtllm"]))
    del deployment.object["status"]["provider"]["engine"]

    deployment.turn(offering("a", ["sglang", "trtllm"]))

    assert selection(deployment) == ("a", "sglang")


def test_another_selected_engine_is_reported() -> None:
    deployment = Deployment(GPU)
    deployment.turn(offering("a", ENGINES))
    deployment.users_change(CPU)
    decided = decide(deployment.object, [offering("a", ENGINES)]) or {}

    event = announcement(deployment.object, decided)

    assert event is not None
    assert event[:2] == ("Normal", "ProviderSelected")


def settle(deployment: Deployment, registered: Sequence[Provider], refused: set[tuple[str, str]]) -> None:
    """Let the selected provider answer until it accepts the engine, or the selector chooses no other one."""
    for _ in range(len(registered) * len(ENGINES) + 2):
        deployment.turn(*registered)
        name, engine = selection(deployment)
        if (name, engine) not in refused:
            return
        deployment.provider_refuses(str(name), f"{name} cannot do {engine}")


def test_refusal_of_one_engine_leaves_the_others() -> None:
    """Histories of providers that refuse some engines: the first pair that nobody refuses is selected."""
    random = Random(7)
    pairs = [(name, engine) for engine in ENGINES for name in ("a", "b")]
    for _ in range(120):
        engines = {name: random.choice(ENGINE_SETS) for name in ("a", "b")}
        refused = {pair for pair in pairs if random.random() < 0.6}
        deployment = Deployment(GPU)
        registered = [offering(name, sorted(engines[name])) for name in ("a", "b")]

        settle(deployment, registered, refused)

        offers = [(name, engine) for name, engine in pairs if engine in engines[name]]
        accepted = [pair for pair in offers if pair not in refused]
        if accepted:
            assert selection(deployment) == accepted[0], (engines, refused)
        else:
            assert deployment.selected[:2] == ("False", "NoMatchingProvider")
            message = deployment.selected[2]
            assert all(f"{name} cannot do {engine}" in message for name, engine in offers)


def test_refusal_of_an_earlier_engine_is_not_counted_again() -> None:
    """The provider has not answered for the second engine yet."""
    deployment = Deployment(GPU)
    deployment.turn(offering("a", ENGINES))
    deployment.provider_refuses("a", "no")

    for _ in range(3):
        deployment.turn(offering("a", ENGINES))

    assert selection(deployment) == ("a", "sglang")
    left_out = deployment.object["status"]["selection"]["leftOut"]
    assert left_out == [{"name": "a/vllm", "message": "no"}]
    assert deployment.selected[2].endswith("; a refused it with engine vllm: no")


def test_selector_waits_for_the_engine_that_serves() -> None:
    """Provider b was named, and the name is removed together with the engine, while a serves."""
    deployment = Deployment({**GPU, "engine": {"type": "sglang"}})
    deployment.turn(offering("a", ENGINES))
    created(deployment)
    deployment.core_selects("b")
    deployment.users_change(GPU)
    registered = [offering("a", ENGINES), offering("b", ENGINES)]

    deployment.turn(*registered)
    assert selection(deployment) == ("b", None)

    deployment.status["provider"]["engine"] = "sglang"
    deployment.turn(*registered)
    assert selection(deployment) == ("b", "sglang")
