"""The generation that `Ready` names while a model serves: never one whose pods do not serve yet."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kubefoundry_sdk._provider.contract import Endpoint, Observation, Replicas
from kubefoundry_sdk._provider.reconcile.report import Report, Stop
from kubefoundry_sdk._provider.reconcile.reported_generation import (
    NO_GENERATION,
    Generations,
    Holdback,
    Snapshot,
    judge,
    note_applied,
    note_foreign_pods,
    note_idle,
)
from support.plans import provider

MANAGER = "example-provider"
PLAIN = replace(provider(), settles=0.0)
SERVES = Observation("Running", "DeploymentReady", "it serves", Replicas(1, 1, 1), Endpoint("m", 80))
REFUSED = Stop("ProviderCompatible", "Unsupported", "no", failed=True)


def model(generation: int, reported: int | None, *, ready: bool = True, asked: str | None = None) -> Any:
    spec = {"provider": {"name": asked}} if asked else {}
    status: dict[str, Any] = {}
    if reported is not None:
        condition = {"type": "Ready", "status": str(ready), "observedGeneration": reported}
        status = {"observedGeneration": reported, "conditions": [condition]}
    return {
        "metadata": {"name": "m", "namespace": "n", "generation": generation},
        "spec": spec,
        "status": status,
    }


def upstream(generation: int = 2, observed: Any = 2, **meta: Any) -> Any:
    return {
        "metadata": {"name": "m", "uid": "u", "generation": generation, **meta},
        "status": {"observedGeneration": observed},
    }


def judged(
    live: Any,
    thing: Any,
    *,
    applied: bool = True,
    stop: Stop | None = None,
    seen: Observation = SERVES,
) -> Holdback | None:
    report = Report(live["metadata"]["generation"], stop=stop)
    generations = Generations()
    if applied:
        note_applied(generations, report, thing)
    return judge(generations, Snapshot(live, thing, report, seen, PLAIN, MANAGER, 1.0))


HELD = [
    pytest.param({"applied": False, "stop": REFUSED}, "", id="refused"),
    pytest.param({"applied": False}, "it is not applied yet", id="not applied"),
    pytest.param(
        {"thing": upstream(2, 1)},
        "the Example operator has not seen the newest generation yet",
        id="not seen",
    ),
    pytest.param({"thing": upstream(2, 9)}, "names generation 9, but the newest is 2", id="too new"),
    pytest.param({"thing": upstream(2, None)}, "has not reported on the newest generation yet", id="absent"),
    pytest.param({"thing": upstream(2, "2")}, "a generation that is not a valid number", id="text"),
    pytest.param({"thing": upstream(2, True)}, "a generation that is not a valid number", id="boolean"),
    pytest.param({"seen": replace(SERVES, updating=True)}, "", id="rolling out"),
    pytest.param({"seen": replace(SERVES, update_failed=True)}, "", id="failed"),
    pytest.param(
        {"seen": replace(SERVES, acknowledged=False)}, "has not reported on the newest", id="own word"
    ),
    pytest.param({"thing": upstream(deletionTimestamp="x")}, "is being deleted", id="recreated"),
    pytest.param({"live": model(4, 3, asked="other")}, "names provider other", id="other provider"),
]


@pytest.mark.parametrize(("changes", "why"), HELD)
def test_earlier_generation_is_reported(changes: dict[str, Any], why: str) -> None:
    held = judged(**{"live": model(4, 3), "thing": upstream(), **changes})

    assert held is not None
    assert held.generation == 3
    assert why in held.why and bool(why) == bool(held.why)


@pytest.mark.parametrize("claimed", [4, 5, None])
def test_reported_generation_yields_to_own_observation(claimed: int | None) -> None:
    """A webhook, or anybody who may write the status, changes what it names."""
    live, thing = model(4, claimed), upstream()
    report = Report(4, stop=REFUSED)
    generations = Generations(serving=3)

    held = judge(generations, Snapshot(live, thing, report, SERVES, PLAIN, MANAGER, 1.0))

    assert held == Holdback(3)


def test_unregistered_provider_is_reported_with_its_remedy() -> None:
    live = model(4, 3, asked="nosuch")
    words = "Provider nosuch is not registered; install it"
    selected = {
        "type": "ProviderSelected",
        "status": "False",
        "reason": "ProviderNotRegistered",
        "message": words,
    }
    live["status"]["conditions"].append(selected)

    held = judged(live, upstream())

    assert held is not None
    assert held.why == words


@pytest.mark.parametrize(("changes", "why"), HELD)
def test_served_generation_is_kept_whatever_follows(changes: dict[str, Any], why: str) -> None:
    live = {**model(4, 4), "spec": changes.get("live", {}).get("spec", {})}

    assert judged(**{"thing": upstream(), **changes, "live": live}) is None


@pytest.mark.parametrize("seen", [SERVES, replace(SERVES, acknowledged=True)], ids=["runtime", "provider"])
def test_newest_generation_is_reported_once_it_serves(seen: Observation) -> None:
    thing = upstream(2, 2) if seen.acknowledged is None else upstream(2, 1)

    assert judged(model(4, 3), thing, seen=seen) is None


@pytest.mark.parametrize(
    ("reported", "reason", "expected"),
    [
        (4, "Progressing", NO_GENERATION),
        (3, "Progressing", NO_GENERATION),
        (3, "EndpointUnverified", 3),
    ],
)
def test_pods_after_a_gap_are_of_an_unknown_generation(reported: int, reason: str, expected: int) -> None:
    """A new process finds in the status whether pods served. With EndpointUnverified, they did."""
    live = model(4, reported, ready=False)
    live["status"]["conditions"][0]["reason"] = reason

    held = judged(live, upstream(), seen=replace(SERVES, updating=True))

    assert held == Holdback(expected)


@pytest.mark.parametrize("has_status", [True, False], ids=["reported", "status not written"])
def test_pods_that_failed_leave_no_generation_known(has_status: bool) -> None:
    generations, thing, updating = Generations(), upstream(), replace(SERVES, updating=True)

    def look(live: Any) -> Holdback | None:
        note_applied(generations, Report(4), thing)
        return judge(generations, Snapshot(live, thing, Report(4), updating, PLAIN, MANAGER, 1.0))

    before = look(model(4, 3))
    note_idle(generations, thing)
    after = look(model(4, 4, ready=False) if has_status else model(4, 3))

    assert (before, after) == (Holdback(3), Holdback(NO_GENERATION))


def test_status_settles_after_the_acknowledgement() -> None:
    generations, report, thing = Generations(), Report(4), upstream()
    note_applied(generations, report, thing)
    slow = replace(PLAIN, settles=3.0)

    lefts = []
    for now in (10.0, 12.0, 13.0):
        held = judge(generations, Snapshot(model(4, 3), thing, report, SERVES, slow, MANAGER, now))
        lefts.append(held.left if held else None)

    assert lefts == [3.0, 1.0, None]


@pytest.mark.parametrize(("names_generation", "expected"), [(False, None), (True, 3)])
def test_bare_status_is_no_proof_when_the_crd_has_the_field(
    names_generation: bool, expected: int | None
) -> None:
    generations, report, thing = Generations(), Report(4), {**upstream(), "status": {"state": "successful"}}
    note_applied(generations, report, thing)

    held = judge(
        generations,
        Snapshot(model(4, 3), thing, report, SERVES, PLAIN, MANAGER, 1.0, names_generation=names_generation),
    )

    assert (held.generation if held else None) == expected


def test_first_generation_is_reported_at_once() -> None:
    generations, report, thing = Generations(), Report(1), upstream()
    note_idle(generations, thing)
    note_applied(generations, report, thing)

    slow = replace(PLAIN, settles=3.0)
    held = judge(generations, Snapshot(model(1, 1, ready=False), thing, report, SERVES, slow, MANAGER, 1.0))

    assert held is None


CHANGED = [
    pytest.param({"left_alone": "spec.args of Engine 'm'"}, "someone keeps changing", id="left alone"),
    pytest.param({"unreverted": "others changed spec.args", "stop": REFUSED}, "others changed", id="stopped"),
    pytest.param({"replaced": "others added command to Engine 'm'"}, "others added", id="another program"),
]


@pytest.mark.parametrize(("changes", "why"), CHANGED)
@pytest.mark.parametrize("serving", [3, 4])
def test_no_generation_is_named_while_foreign_spec_is_in_force(
    serving: int, changes: dict[str, Any], why: str
) -> None:
    live, thing = model(4, serving), upstream()
    generations = Generations(serving=serving)
    note_applied(generations, Report(4), thing)

    held = judge(generations, Snapshot(live, thing, Report(4, **changes), SERVES, PLAIN, MANAGER, 1.0))
    before_apply = judge(generations, Snapshot(live, thing, Report(4), SERVES, PLAIN, MANAGER, 2.0))
    note_applied(generations, Report(4), thing)
    after_apply = judge(generations, Snapshot(live, thing, Report(4), SERVES, PLAIN, MANAGER, 3.0))

    assert held is not None and held.generation == NO_GENERATION and why in held.why
    assert before_apply == Holdback(NO_GENERATION, "it is not applied yet")
    assert after_apply is None


@pytest.mark.parametrize(
    ("changes", "why"), [held for held in HELD if held.id in ("not seen", "rolling out")]
)
@pytest.mark.parametrize("served", [3, 4])
def test_no_generation_is_named_until_revert_rolled_out(
    served: int, changes: dict[str, Any], why: str
) -> None:
    """Whatever the status names: it is of the time before the change by others."""
    thing, seen = changes.get("thing", upstream()), changes.get("seen", SERVES)
    generations = Generations(serving=served, endpoint=Endpoint("m", 80))

    note_foreign_pods(generations)
    note_applied(generations, Report(4), thing)
    held = judge(generations, Snapshot(model(4, served), thing, Report(4), seen, PLAIN, MANAGER, 1.0))
    done = judge(generations, Snapshot(model(4, served), upstream(), Report(4), SERVES, PLAIN, MANAGER, 2.0))

    assert held is not None and held.generation == NO_GENERATION and why in held.why
    assert done is None
    assert generations.serving == 4


@dataclass
class World:
    """A cluster in which it is known which generation serves."""

    reports_generation: bool
    generation: int = 1
    applied: int = 1
    processed: int = 1
    """By the upstream operator, generation of the ModelDeployment."""
    serving: int | None = 1
    """The generation of the ready pods."""
    crashed: int = 1
    """The generation of the pods that were ready last."""
    upstream_generation: int = 1
    clock: float = 0.0
    applied_at: int = 0
    written_at: int = 0
    status: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    generations: Generations = field(default_factory=Generations)

    def edit(self) -> None:
        self.generation += 1

    def apply(self) -> None:
        if self.applied != self.generation:
            self.applied, self.applied_at = self.generation, int(self.clock)
            self.upstream_generation += 1

    def process(self) -> None:
        self.processed = self.applied
        self._write({"rollout": self.processed})

    def roll_out(self) -> None:
        if not self.reports_generation:
            # Nobody can tell which spec such a status is about: an operator is trusted to read the newest one first.
            self.processed = self.applied
        self.serving = self.processed
        self._write({"rollout": self.processed, "done": True})

    def crash(self) -> None:
        self.crashed, self.serving = self.serving or self.crashed, None

    def recover(self) -> None:
        self.serving = self.serving or self.crashed

    def restart(self) -> None:
        self.generations = Generations()

    def tick(self) -> None:
        self.clock += 0.4

    def _write(self, status: dict[str, Any]) -> None:
        if self.reports_generation:
            status["observedGeneration"] = (
                self.upstream_generation if self.processed == self.applied else self.upstream_generation - 1
            )
        if status != self.status:
            self.status, self.written_at = status, int(self.clock)

    def upstream(self) -> Any:
        managed = [
            {"manager": MANAGER, "operation": "Apply", "time": f"{self.applied_at:09}"},
            {"manager": "o", "operation": "Update", "subresource": "status", "time": f"{self.written_at:09}"},
        ]
        meta = {"uid": "u", "generation": self.upstream_generation, "managedFields": managed}
        return {"metadata": meta, "status": self.status}

    def reconcile(self, *, writes: bool) -> int | None:
        """One turn of the provider; the generation that Ready is True at, None if it is not."""
        live = {"metadata": {"generation": self.generation}, "status": self.model}
        self.generations.acknowledgement.is_processed(
            self.upstream(), MANAGER, names_generation=self.reports_generation
        )
        report = Report(self.generation, stop=None if writes else REFUSED)
        if writes:
            self.apply()
            note_applied(self.generations, report, self.upstream())
        reported = self.generation
        if self.serving is not None:
            updating = self.serving != self.processed
            seen = replace(SERVES, updating=updating)
            names_generation = self.reports_generation
            look = Snapshot(live, self.upstream(), report, seen, PLAIN, MANAGER, self.clock, names_generation)
            held = judge(self.generations, look)
            reported = held.generation if held else self.generation
        is_ready = self.serving is not None
        condition = {"type": "Ready", "status": str(is_ready), "observedGeneration": reported}
        self.model = {"observedGeneration": reported, "conditions": [condition]}
        return reported if is_ready else None


@pytest.mark.parametrize("reports_generation", [True, False])
@pytest.mark.parametrize("seed", range(150))
def test_ready_never_names_a_generation_that_does_not_serve(reports_generation: bool, seed: int) -> None:
    chance = random.Random(seed)
    world = World(reports_generation)
    world.roll_out()
    world.reconcile(writes=True)
    for _ in range(60):
        chance.choice(
            [world.edit, world.process, world.roll_out, world.crash, world.recover, world.restart]
            + [world.tick] * 4
        )()
        if chance.random() < 0.7:
            ready = world.reconcile(writes=chance.random() < 0.6)
            assert ready != world.generation or world.serving == world.generation


@pytest.mark.parametrize("reports_generation", [True, False])
@pytest.mark.parametrize("seed", range(50))
def test_ready_names_the_newest_generation_in_the_end(reports_generation: bool, seed: int) -> None:
    chance = random.Random(seed)
    world = World(reports_generation)
    world.roll_out()
    world.reconcile(writes=True)
    for _ in range(30):
        chance.choice([world.edit, world.process, world.roll_out, world.restart, world.tick])()
        world.reconcile(writes=chance.random() < 0.5)
    world.edit()
    world.reconcile(writes=True)
    for _ in range(4):
        world.tick()

    world.process()
    world.roll_out()

    assert world.reconcile(writes=True) == world.generation
