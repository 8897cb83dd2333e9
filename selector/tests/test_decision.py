"""When a selection is made, kept, made anew and let go (contract §3 and §5), replayed on a ModelDeployment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk.api.kinds import Object
from kubefoundry_selector.candidate import Provider, provider
from kubefoundry_selector.decision import announcement, decide, unsettled

GPU_SPEC: dict[str, Any] = {
    "model": {"id": "org/m"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}
SGLANG = {**GPU_SPEC, "engine": {"type": "sglang"}}
MORE_GPUS = {**GPU_SPEC, "resources": {"gpu": {"count": 2}}}


def offered(name: str, *, priority: int = 0, engines: Sequence[str] = ("vllm",)) -> Provider:
    """A provider whose one rule always matches."""
    spec = {
        "capabilities": {"engines": list(engines), "servingModes": ["aggregated"], "gpuSupport": True},
        "selectionRules": [{"condition": "true", "priority": priority, "reason": f"always → {name}"}],
    }
    return provider({"metadata": {"name": name}, "spec": spec, "status": {"ready": True}})


A, B = offered("a", priority=1), offered("b")
B_SGLANG = offered("b", engines=["vllm", "sglang"])


class Deployment:
    """A ModelDeployment and what its writers do to it, each as the contract has it."""

    def __init__(self, spec: dict[str, Any] | None = None, **metadata: Any) -> None:
        self.object: Object = {
            "metadata": {"name": "m", "namespace": "default", "generation": 0, **metadata},
            "status": {},
        }
        self.users_change(spec or GPU_SPEC)

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.object["status"]
        return status

    def condition(self, type_: str) -> dict[str, Any]:
        return next((item for item in self.status.get("conditions", []) if item["type"] == type_), {})

    def put_condition(self, type_: str, **content: Any) -> None:
        kept = [item for item in self.status.get("conditions", []) if item["type"] != type_]
        self.status["conditions"] = [*kept, {"type": type_, **content}]

    def users_change(self, spec: dict[str, Any]) -> None:
        """A new generation, which core finds valid."""
        self.object["spec"] = spec
        self.object["metadata"]["generation"] += 1
        generation = self.object["metadata"]["generation"]
        self.put_condition("Validated", status="True", observedGeneration=generation)

    def annotate(self, value: str | None) -> None:
        self.object["metadata"]["annotations"] = {} if value is None else {"kubefoundry.ai/reselect": value}

    def core_selects(self, name: str) -> None:
        self.users_change({**self.object["spec"], "provider": {"name": name}})
        self.status["provider"] = {"name": name, "selectedReason": "explicit provider selection"}
        generation = self.object["metadata"]["generation"]
        self.put_condition(
            "ProviderSelected",
            status="True",
            reason="ExplicitlySelected",
            message="x",
            observedGeneration=generation,
        )

    def shim_refuses(self, name: str, message: str) -> None:
        self.shim_writes(name)
        generation = self.object["metadata"]["generation"]
        self.put_condition(
            "ProviderCompatible",
            status="False",
            reason="Unsupported",
            message=message,
            observedGeneration=generation,
        )

    def shim_writes(self, name: str) -> None:
        self.object["metadata"]["managedFields"] = [
            {"manager": f"{name}-provider", "operation": "Apply", "subresource": "status"}
        ]

    def turn(self, *registered: Provider) -> str | None:
        """The selector's turn, written; what it announces. A second turn must find nothing left to change."""
        decided = decide(self.object, registered)
        if decided is None:
            return None
        told = announcement(self.object, decided)
        for condition in decided.get("conditions", []):
            self.put_condition(condition["type"], **{k: v for k, v in condition.items() if k != "type"})
        self.status["provider"] = {**self.status.get("provider", {}), **decided.get("provider", {})}
        assert decide(self.object, registered) == decided
        assert announcement(self.object, decided) is None
        return f"{told[0]} {told[1]}: {told[2]}" if told else None

    @property
    def provider(self) -> str | None:
        name: str | None = self.status.get("provider", {}).get("name")
        return name

    @property
    def selected(self) -> tuple[str, str, str]:
        found = self.condition("ProviderSelected")
        return found["status"], found["reason"], found["message"]


def test_first_selection_is_written_and_told() -> None:
    deployment = Deployment()

    decided = decide(deployment.object, [A, B])

    assert decided == {
        "provider": {"name": "a", "selectedReason": "always → a"},
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

    told = deployment.turn(A)

    assert told == (
        "Warning NoMatchingProvider: No provider matches engine=sglang, mode=aggregated, gpu=1: "
        "a does not support sglang engine. Change the spec, or name a provider in spec.provider.name"
    )
    assert deployment.provider is None
    assert deployment.selected == ("False", "NoMatchingProvider", told.split(": ", 1)[1])
    assert unsettled(deployment.object)
    assert deployment.turn(A, B_SGLANG) == "Normal ProviderSelected: Selected provider 'b': always → b"
    assert not unsettled(deployment.object)


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


def test_an_invalid_spec_is_not_selected_for() -> None:
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


def test_users_change_that_the_provider_cannot_do_selects_anew() -> None:
    deployment = Deployment()
    deployment.turn(A, B_SGLANG)
    deployment.users_change(SGLANG)

    assert deployment.turn(A, B_SGLANG) == "Normal ProviderSelected: Selected provider 'b': always → b"


def test_without_another_the_provider_keeps_the_model_and_the_condition_tells() -> None:
    deployment = Deployment()
    deployment.turn(A, B)
    deployment.users_change(SGLANG)

    told = deployment.turn(A, B)

    assert told is not None and told.startswith(
        "Warning NoMatchingProvider: No provider matches engine=sglang"
    )
    assert told.endswith(". Provider a keeps what it serves")
    assert deployment.provider == "a"
    assert deployment.selected[0] == "False"
    assert unsettled(deployment.object)


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


def test_reselect_with_a_new_value_only() -> None:
    low, high = offered("a"), offered("b", priority=9)
    deployment = Deployment()
    deployment.turn(low)
    deployment.annotate("1")

    assert deployment.turn(low, high) == "Normal ProviderSelected: Selected provider 'b': always → b"
    assert deployment.selected[2] == "Provider b auto-selected [reselect: 1]"

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


def test_reselect_that_is_there_from_the_start_asks_for_nothing_more() -> None:
    deployment = Deployment(annotations={"kubefoundry.ai/reselect": "1"})
    deployment.turn(offered("a"))

    deployment.turn(offered("a"), offered("b", priority=9))

    assert deployment.provider == "a"


def test_reselect_of_the_same_provider_is_told() -> None:
    deployment = Deployment()
    deployment.turn(A)
    deployment.annotate("1")

    assert deployment.turn(A) == "Normal ProviderSelected: Selected provider 'a': always → a"


def test_reselect_without_a_candidate_keeps_the_provider_and_tries_on() -> None:
    deployment = Deployment()
    deployment.turn(A)
    deployment.annotate("1")

    told = deployment.turn(replace(A, not_ready=""))

    assert told is not None and told.startswith(
        "Warning ReselectFailed: Provider a auto-selected; asked to select again, but: "
    )
    assert deployment.selected[:2] == ("True", "AutoSelected")
    assert unsettled(deployment.object)
    deployment.turn(replace(A, not_ready=""), B)
    assert deployment.provider == "b"


def test_refused_before_anything_was_created_goes_to_another() -> None:
    deployment = Deployment()
    deployment.turn(A, B)
    deployment.shim_refuses("a", "A cannot do that")

    assert deployment.turn(A, B) == "Normal ProviderSelected: Selected provider 'b': always → b"
    assert deployment.selected[2] == "Provider b auto-selected [left out: a]"


def test_refused_by_all_stays_with_the_last_and_does_not_go_round() -> None:
    deployment = Deployment()
    deployment.turn(A, B)
    deployment.shim_refuses("a", "A cannot do that")
    deployment.turn(A, B)
    deployment.shim_refuses("b", "B neither")

    told = deployment.turn(A, B)

    assert told is not None and "a refused it; b refused it: B neither. Change the spec" in told
    assert deployment.provider == "b"
    assert deployment.turn(A, B) is None
    assert deployment.provider == "b"

    deployment.users_change(MORE_GPUS)
    deployment.turn(A, B)
    assert (deployment.provider, deployment.selected) == (
        "b",
        ("True", "AutoSelected", "Provider b auto-selected"),
    )


def test_the_refusal_of_the_predecessor_is_not_taken_for_the_new_ones() -> None:
    deployment = Deployment()
    deployment.turn(A, B, offered("c", priority=-1))
    deployment.shim_refuses("a", "A cannot do that")
    deployment.turn(A, B, offered("c", priority=-1))

    deployment.turn(A, B, offered("c", priority=-1))

    assert deployment.provider == "b"


@pytest.mark.parametrize("created", ["resourceName", "condition", "older"])
def test_a_refusal_later_on_changes_nothing(created: str) -> None:
    deployment = Deployment()
    deployment.turn(A, B)
    deployment.shim_refuses("a", "A cannot do that")
    if created == "resourceName":
        deployment.status["provider"]["resourceName"] = "m"
    elif created == "condition":
        deployment.put_condition("ResourceCreated", status="True")
    else:
        deployment.condition("ProviderCompatible")["observedGeneration"] = 0

    deployment.turn(A, B)

    assert deployment.provider == "a"


def test_reselect_forgets_who_refused() -> None:
    deployment = Deployment()
    deployment.turn(A, B)
    deployment.shim_refuses("a", "A cannot do that")
    deployment.turn(A, B)
    deployment.shim_writes("b")
    deployment.condition("ProviderCompatible")["status"] = "True"
    deployment.annotate("1")

    deployment.turn(A, B)

    assert deployment.provider == "a"
    assert deployment.selected[2] == "Provider a auto-selected [reselect: 1]"


def test_let_go_only_when_core_has_taken_over() -> None:
    deployment = Deployment()
    deployment.turn(A, B)
    deployment.users_change({**GPU_SPEC, "provider": {"name": "b"}})

    assert decide(deployment.object, [A, B]) is None
    assert not unsettled(deployment.object)

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
    assert deployment.selected == ("True", "AutoSelected", "Provider a auto-selected [reselect: 1]")


def test_taken_back_from_core_a_provider_that_cannot_do_it_is_replaced() -> None:
    deployment = Deployment()
    deployment.core_selects("a")
    deployment.users_change(SGLANG)

    deployment.turn(A, B_SGLANG)

    assert deployment.provider == "b"


def test_what_another_selector_chose_is_kept() -> None:
    deployment = Deployment()
    deployment.status["provider"] = {"name": "a", "selectedReason": "cheapest"}

    deployment.turn(offered("a"), offered("b", priority=9))

    assert deployment.status["provider"] == {"name": "a", "selectedReason": "cheapest"}
