"""Somebody empties the status of a model, or a part of it: its provider keeps it in every state, and work goes on."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import pytest

from kubefoundry_sdk._api import names, reasons
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from simulation.actions import Actions
from simulation.cluster import Cluster, cluster
from simulation.runner import PROVIDERS
from simulation.steps import Step
from simulation.test_changed_while import LONG, STARTED, STATES
from simulation.world import component

SETTLED: Final = 120.0
"""Seconds in which a state, an emptied status and the end of the state are acted on."""
DELETING: Final = 20.0
"""The same for a deletion, which ends after 60 s (`--finalizer-timeout`)."""
OUTLIVED: Final = 3 * SETTLED
"""Seconds for which a provider does not run."""
OTHER: Final = PROVIDERS[1]
"""A provider that would be chosen for a new model once its rule has the highest priority."""
FORGERY: Final = [names.provider_finalizer(OTHER)]
SAMPLES: Final = 2
"""Random parts of the status that are removed in each state."""

Erase = Callable[[Object], Object]


class Course(NamedTuple):
    """The status in a state, and after its end, and the kinds of the upstream objects then."""

    within: Object
    after: Object
    kinds: set[str]


def _without(*fields: str) -> Erase:
    return lambda status: {name: value for name, value in status.items() if name not in fields}


ERASURES: Final[dict[str, Erase]] = {
    "everything": lambda status: {},
    "provider": _without("provider"),
    "conditions": _without("conditions"),
    "observedGeneration": _without("observedGeneration"),
    "all but provider": lambda status: {"provider": status["provider"]} if "provider" in status else {},
    "all but conditions": lambda status: {"conditions": status["conditions"]},
}


def _delete_slowly(actions: Actions) -> None:
    """Delete a model whose upstream object stays until its operator is back."""
    actions.do(Step("operator-down", PROVIDERS[0], LONG))
    actions.do(Step("delete", "m"))


def _outlive(actions: Actions) -> None:
    """Hand a model over while its provider does not run, so that both have a finalizer after the time-out."""
    actions.do(Step("crash", component(PROVIDERS[0]), OUTLIVED))
    live = actions.model("m")
    assert live is not None
    if "provider" in live["spec"]:
        actions.do(Step("edit", "m", {"provider": {"name": OTHER}}))
    else:
        actions.do(Step("annotate", "m", {names.RESELECT_ANNOTATION: "1"}))


LIVES: Final = {**STATES, "deleted": _delete_slowly, "outlived": _outlive}
CHOICES: Final = (None, PROVIDERS[0])


def _random_part(seed: int) -> Erase:
    """Return an erasure of random fields and conditions."""
    chance = random.Random(seed)

    def erase(status: Object) -> Object:
        kept = copy.deepcopy({name: value for name, value in status.items() if chance.random() < 0.6})
        if "conditions" in kept:
            kept["conditions"] = [item for item in kept["conditions"] if chance.random() < 0.6]
        if "provider" in kept:
            fields = kept["provider"].items()
            kept["provider"] = {name: value for name, value in fields if chance.random() < 0.6}
        return kept

    return erase


def _erase(actions: Actions, erasure: Erase) -> None:
    live = actions.model("m")
    assert live is not None
    status = erasure(live.get("status") or {})
    answer = actions.send("PUT", MODEL_DEPLOYMENTS, "m", {**live, "status": status}, suffix="/status")
    assert answer.code == 200


def _resume(actions: Actions) -> None:
    actions.world.stop_faults()
    actions.do(Step("annotate", "m", {names.PAUSED_ANNOTATION: "", names.DRY_RUN_ANNOTATION: ""}))
    actions.do(Step("edit", "m", {"engine": {"args": {"model": None}}}))


def _comparable(it: Cluster) -> Any:
    """Return the status without random names of clusters, and without what is lost with it for good.

    That is the reason of the choice, and the start of a model that serves already.
    """
    status = it.status(MODEL_DEPLOYMENTS, "m")
    status.pop("start", None)
    status.get("provider", {}).pop("selectedReason", None)
    if "selector" in status:
        status["selector"] = re.sub(r"m-[0-9a-f]{5}", "m-", status["selector"])
    return status


def _undated(status: Object) -> Object:
    """Return the status without the generation of `ProviderSelected`: the selector cannot decide in each state."""
    undated = copy.deepcopy(status)
    for item in undated["conditions"]:
        if item["type"] == reasons.PROVIDER_SELECTED:
            del item["observedGeneration"]
    return undated


def _played(
    state: str, provider: str | None, erasure: Erase | None, name: str = "", *, restart: bool = False
) -> Course:
    with cluster(f"emptied {state} {provider} {name}") as it:

        async def run() -> Course:
            await it.start()
            actions = Actions(it.world)
            it.do(Step("create", "m", ["gpu", provider]))
            await it.loop.advance(STARTED)
            it.do(Step("rule", OTHER, 900))
            await it.loop.advance(1)
            LIVES[state](actions)
            seconds = DELETING if state == "deleted" else SETTLED
            await it.loop.advance(seconds)
            if erasure is not None:
                _erase(actions, erasure)
                for component_name in it.world.components if restart else ():
                    it.do(Step("crash", component_name))
                await it.loop.advance(seconds)
            within = _undated(_comparable(it))
            _resume(actions)
            await it.loop.advance(4 * SETTLED)
            return Course(within, _comparable(it), {kind.kind for kind, _ in actions.upstream("m")})

        return it.play(run())


@cache
def _undisturbed(state: str, provider: str | None) -> Course:
    return _played(state, provider, None)


@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.parametrize("erased", ERASURES)
@pytest.mark.parametrize("provider", CHOICES)
@pytest.mark.parametrize("state", LIVES)
def test_erased_status_is_restored_in_each_state(state: str, provider: str | None, erased: str) -> None:
    course = _played(state, provider, ERASURES[erased], erased)

    assert course == _undisturbed(state, provider)


@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.parametrize("sample", range(SAMPLES))
@pytest.mark.parametrize("provider", CHOICES)
@pytest.mark.parametrize("state", LIVES)
def test_random_parts_are_restored_in_each_state(state: str, provider: str | None, sample: int) -> None:
    seed = SAMPLES * len(CHOICES) * list(LIVES).index(state) + SAMPLES * CHOICES.index(provider) + sample

    course = _played(state, provider, _random_part(seed), str(sample))

    assert course == _undisturbed(state, provider)


FORGED: Final[dict[str, Callable[[list[str]], list[str]]]] = {
    "first": lambda own: [*FORGERY, *own],
    "last": lambda own: [*own, *FORGERY],
    "alone": lambda own: FORGERY,
}
"""Finalizers that a tenant writes under the field manager of a provider that does not run."""
EMPTIED: Final[dict[str, Erase]] = {
    **ERASURES,
    "name": lambda status: {**status, "provider": {**status["provider"], "name": ""}},
    "provider and phase": _without("provider", "phase", "message"),
    "all but endpoint": lambda status: {"endpoint": status["endpoint"]},
}


def _forge(actions: Actions, place: str) -> None:
    live = actions.model("m")
    assert live is not None
    meta = {**live["metadata"], "finalizers": FORGED[place](live["metadata"]["finalizers"])}
    manager = names.provider_manager(OTHER)
    answer = actions.send("PUT", MODEL_DEPLOYMENTS, "m", {**live, "metadata": meta}, by=manager)
    assert answer.code == 200


@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.parametrize("erased", EMPTIED)
@pytest.mark.parametrize("place", FORGED)
@pytest.mark.parametrize("provider", CHOICES)
def test_forged_finalizer_takes_no_emptied_model(provider: str | None, place: str, erased: str) -> None:
    """The provider of the forged finalizer does not run, comes back, and has a rule of the highest priority."""
    with cluster(f"forged {provider} {place} {erased}") as it:

        async def run() -> None:
            await it.start()
            actions = Actions(it.world)
            it.do(Step("create", "m", ["gpu", provider]))
            await it.loop.advance(STARTED)
            it.do(Step("rule", OTHER, 900))
            it.do(Step("crash", component(OTHER), SETTLED))
            await it.loop.advance(1)
            before = [(kind.kind, obj["metadata"]["uid"]) for kind, obj in actions.upstream("m")]

            _forge(actions, place)
            _erase(actions, EMPTIED[erased])
            await it.loop.advance(4 * SETTLED)

            live = actions.model("m")
            assert live is not None
            assert live["metadata"]["finalizers"] == [names.provider_finalizer(PROVIDERS[0])]
            assert live["status"]["provider"]["name"] == PROVIDERS[0]
            assert [(kind.kind, obj["metadata"]["uid"]) for kind, obj in actions.upstream("m")] == before

        it.play(run())


@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.parametrize("provider", CHOICES)
@pytest.mark.parametrize("state", [state for state in LIVES if state != "outlived"])
def test_emptied_status_keeps_provider_when_all_restart(state: str, provider: str | None) -> None:
    course = _played(state, provider, ERASURES["everything"], "restarted", restart=True)

    undisturbed = _undisturbed(state, provider)
    # A new process cannot report an object that it cannot list.
    assert course.within["provider"]["name"] == undisturbed.within["provider"]["name"]
    assert course[1:] == undisturbed[1:]
