"""The steps of a history, and their random choice from a seed: hostile sequences first, uniform dice last."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kubefoundry_sdk._api import names
from simulation.world import CORE, SELECTOR, component
from support.deployments import CPU, DISAGGREGATED, GPU


class Step(NamedTuple):
    """One step.

    Attributes:
        do: The name of the action (`actions.ACTIONS`).
        on: The name of a model, component or provider.
        value: The argument of the action.
        wait: Seconds that pass afterwards.
    """

    do: str
    on: str = ""
    value: Any = None
    wait: float = 0.0


INVENTED: Final = names.provider_finalizer("nosuch")
"""A finalizer in a manifest, of a provider that does not exist."""

MODEL_NAMES: Final = ("m", "n")
LONG: Final = "m" * 45
"""A name that is too long for a worker of Dynamo."""

HALF: Final[dict[str, Any]] = {
    **DISAGGREGATED,
    "scaling": {**DISAGGREGATED["scaling"], "decode": {"replicas": 0, "gpu": {"count": 1}, "memory": "16Gi"}},
}
"""Nothing serves without decode workers."""

OTHER: Final[dict[str, Any]] = {**GPU, "model": {"id": "org/other"}}
TUNED: Final[dict[str, Any]] = {**GPU, "engine": {"type": "vllm", "args": {"max-num-seqs": "64"}}}

SPECS: Final = {
    "gpu": GPU,
    "other": OTHER,
    "tuned": TUNED,
    "disaggregated": DISAGGREGATED,
    "half": HALF,
    "cpu": CPU,
}
WAITS: Final = (0.0, 0.0, 0.01, 0.1, 0.5, 2.0, 6.0, 12.0)
OUTAGE: Final = 210.0
"""Seconds after which delays that double without a bound have passed three minutes."""

FAULTS: Final = ("lost", "unsent", "conflict", "error", "busy", "crash", "crash", "crash")


def edits(providers: tuple[str, str]) -> list[tuple[dict[str, Any], int]]:
    """Return merge patches of a spec, with their weights."""
    return [
        ({"engine": {"args": {"max-num-seqs": "64"}}}, 3),
        ({"engine": {"args": {"max-num-seqs": "128"}}}, 3),
        ({"engine": {"args": None}}, 2),
        ({"engine": {"contextLength": 4096}}, 2),
        ({"scaling": {"replicas": 2}}, 2),
        ({"scaling": {"replicas": 0}}, 1),
        ({"scaling": {"replicas": 1}}, 2),
        ({"model": {"id": "org/other"}}, 2),
        ({"model": {"id": "org/model"}}, 2),
        ({"image": "example.com/engine:1.4.0"}, 1),
        ({"resources": {"gpu": None}}, 1),
        ({"env": [{"name": "GREETING", "value": "hi"}]}, 1),
        ({"provider": {"overrides": {"spec": 7}}}, 2),
        ({"provider": {"overrides": None}}, 1),
        *(({"provider": {"name": name}}, 3) for name in providers),
        ({"provider": {"name": None}}, 2),
        ({"provider": {"name": "nobody"}}, 1),
    ]


class Draw:
    """Draws the steps of one history.

    Args:
        chance: Decides on everything.
        providers: The names of the providers.
    """

    def __init__(self, chance: random.Random, providers: tuple[str, str]) -> None:
        self.chance = chance
        self.providers = providers
        self.steps: list[Step] = []
        self._number = 0

    def history(self) -> list[Step]:
        """Return the steps."""
        first = MODEL_NAMES[0] if self.chance.random() < 0.93 else LONG
        self.models = [first, *([MODEL_NAMES[1]] if self.chance.random() < 0.15 else [])]
        if self.chance.random() < 0.5:
            self.add("rule", self.providers[1], self.chance.choice((99, 10, -1)), wait=0.5)
        for model in self.models:
            self._create(model, wait=self.chance.choice((0.0, 0.3, 2.0, 25.0, 25.0, 25.0)))
        for _ in range(self.chance.randint(1, 3)):
            self.chance.choices([scene for scene, _ in SCENES], [weight for _, weight in SCENES])[0](self)
        return self.steps

    def add(self, do: str, on: str = "", value: Any = None, wait: float | None = None) -> None:
        """Add a step."""
        seconds = self.chance.choice(WAITS) if wait is None else wait
        self.steps.append(Step(do, on, value, seconds))

    @property
    def model(self) -> str:
        """Return the name of a model."""
        return self.chance.choice(self.models)

    def _create(self, model: str, wait: float | None = None) -> None:
        spec = self.chance.choice(("gpu", "gpu", "gpu", "other", "tuned", "disaggregated", "half", "cpu"))
        provider = self.chance.choice((None, None, *self.providers))
        self.add("create", model, [spec, provider], wait)

    def edit(self, model: str) -> None:
        """Add an edit of a spec."""
        patches = edits(self.providers)
        patch = self.chance.choices([patch for patch, _ in patches], [weight for _, weight in patches])[0]
        self.add("edit", model, patch)

    def fault(self) -> None:
        """Let a later write fail, or a connection."""
        whom = self.chance.choice(
            (CORE, SELECTOR, *map(component, self.providers), *map(component, self.providers))
        )
        if self.chance.random() < 0.6:
            self.add(
                "fail", whom, [self.chance.choice((1, 1, 2, 2, 3, 4, 5)), self.chance.choice(FAULTS)], 0.0
            )
            return
        what = self.chance.choice(("cut", "freeze", "hold", "hold", "repeat", "expire", "crash"))
        self.add(what, whom, self.chance.choice((1.0, 5.0, 30.0)), self.chance.choice((0.0, 0.1)))

    def any_edits(self) -> None:
        """Edits in flight, with faults."""
        for _ in range(self.chance.randint(1, 4)):
            if self.chance.random() < 0.6:
                self.fault()
            self.edit(self.model)

    def hand_over(self) -> None:
        """A change of provider while the chosen one is away, refuses, or is disturbed."""
        model = self.model
        if self.chance.random() < 0.3:
            self.add(self.chance.choice(("reset", "restore")), model, None, 0.5)
        if self.chance.random() < 0.5:
            self.add(
                self.chance.choice(("freeze", "crash", "cut")),
                component(self.chance.choice(self.providers)),
                30.0,
                0.0,
            )
        elif self.chance.random() < 0.7:
            self.fault()
        if self.chance.random() < 0.5:
            self.add("rule", self.providers[1], self.chance.choice((99, 1)), 0.2)
            self.add("annotate", model, {names.RESELECT_ANNOTATION: self._new()})
        else:
            self.add("edit", model, {"provider": {"name": self.chance.choice(self.providers)}})
        if self.chance.random() < 0.4:
            self.edit(model)
        self.add("wait", wait=self.chance.choice((1.0, 10.0, 25.0)))

    def tamper(self) -> None:
        """Somebody writes what is ours, on the model or on the upstream object."""
        tampering = (
            ("unfinalize", None),
            ("reset", None),
            ("restore", None),
            ("forge", None),
            ("reset-upstream", None),
            ("drift", None),
            ("drift", None),
            ("delete-upstream", None),
            ("second-owner", None),
            ("operator-word", self.chance.choice(("conflict", "more"))),
        )
        do, value = self.chance.choice(tampering)
        if self.chance.random() < 0.4:
            self.fault()
        self.add(do, self.model, value)
        if self.chance.random() < 0.6:
            self.edit(self.model)

    def leave(self) -> None:
        """A deletion, often with a new model of the same name."""
        model = self.model
        if self.chance.random() < 0.5:
            self.fault()
        if self.chance.random() < 0.3:
            self.add("second-owner", model, None, 0.5)
        self.add("delete", model)
        if self.chance.random() < 0.3:
            self.add("unfinalize", model, None)
        if self.chance.random() < 0.8:
            self._create(model)

    def upstream_trouble(self) -> None:
        """Pods that fail, an operator that is away, a kind that cannot be listed."""
        model = self.model
        match self.chance.choice(("fail-pods", "operator-down", "unlisted")):
            case "fail-pods":
                failing = self.chance.choice(("failed", "stuck", "not-ready", "deploy-failed", "updating"))
                self.add("label", model, failing, self.chance.choice((1.0, 12.0, 40.0)))
                self.edit(model)
                if self.chance.random() < 0.7:
                    self.add("label", model, None)
            case "operator-down":
                self.add(
                    "operator-down", self.chance.choice(self.providers), self.chance.choice((10.0, 60.0))
                )
                self.edit(model)
            case _:
                self.add("unlisted", self.chance.choice(self.providers), 40.0, 0.0)
                self.add("crash", component(self.chance.choice(self.providers)), 1.0, 12.0)
                self._create(model)
                self.edit(model)

    def admission(self) -> None:
        """Policies, quotas and webhooks of others, for some time."""
        model = self.model
        policy = self.chance.choice(
            (
                "strip-finalizers",
                "deny-finalizers",
                "deny-removal",
                "rewrite-labels",
                "quota",
                "cold-webhook",
                "webhook-down",
            )
        )
        self.add("policy", policy, self.chance.choice((15.0, 40.0, 70.0)), self.chance.choice((0.0, 1.0)))
        match self.chance.choice(("unfinalize", "delete", "edit", "create", "fail-pods")):
            case "delete":
                self.add("delete", model, None, 20.0)
            case "unfinalize":
                self.add("unfinalize", model, None)
                self.add("breaks", model, self.chance.choice(("failed", "not-ready")), 20.0)
                self.add("breaks", model, None)
            case "fail-pods":
                self.add("label", model, "not-ready", 12.0)
            case "edit":
                self.edit(model)
                self.add("edit", model, {"model": {"id": "org/other"}})
            case _:
                self._create(model)

    def passing(self) -> None:
        """A webhook that starts, or a quota that lacks room for a second model, until the end or shortly before."""
        first, second = MODEL_NAMES
        provider = self.chance.choice(self.providers)
        policy = self.chance.choice(("quota", "cold-webhook", "webhook-down"))
        self.add("delete", first, None, 15.0)
        self.add("create", first, ["gpu", provider], 20.0)
        seconds = self.chance.choice((20.0, 60.0))
        self.add("policy", policy, seconds, 0.0)
        self.add("create", second, ["gpu", provider], seconds - self.chance.choice((5.0, -5.0)))

    def registrations(self) -> None:
        """An administrator deletes registrations, or all processes lose the API server."""
        if self.chance.random() < 0.5:
            self.add("rule", self.providers[1], -1, 0.5)
            self.add("freeze", component(self.providers[0]), 20.0, 0.0)
            self.add("delete", self.models[0], None, 8.0)
            self.add(
                "unregister",
                self.chance.choice(("", self.providers[0])),
                None,
                self.chance.choice((0.0, 1.0)),
            )
            self.add("create", self.models[0], ["gpu", None])
        else:
            seconds = self.chance.choice((5.0, 75.0, OUTAGE))
            if is_before := self.chance.random() < 0.5:
                # The writes that follow fail, and are put off longer each time.
                self.add("edit", self.model, {"engine": {"args": {"max-num-seqs": self._new()}}}, 0.1)
            for name in (CORE, SELECTOR, *map(component, self.providers)):
                self.add("cut", name, seconds, 0.0)
            if not is_before:
                self.edit(self.model)
            self.add("wait", wait=seconds)

    def marks(self) -> None:
        """Annotations, finalizers in manifests, and foreign objects."""
        model = self.model
        match self.chance.choice(("pause", "dry-run", "refresh", "planted", "foreign")):
            case "pause":
                self.add("annotate", model, {names.PAUSED_ANNOTATION: "true"})
                self.edit(model)
                self.add("annotate", model, {names.PAUSED_ANNOTATION: None})
            case "dry-run":
                self.add("annotate", model, {names.DRY_RUN_ANNOTATION: "true"})
                self.edit(model)
                self.add("annotate", model, {names.DRY_RUN_ANNOTATION: None})
            case "refresh":
                self.add("annotate", model, {names.REFRESH_ANNOTATION: self._new()})
            case "planted":
                self.add("plant", model)
                self.add("delete", model, None, 5.0)
            case _:
                self.add("delete", model, None, 15.0)
                self.add("foreign", model, self.chance.choice(self.providers), 0.1)
                self._create(model)

    def _new(self) -> str:
        self._number += 1
        return str(self._number)


SCENES: Final[tuple[tuple[Callable[[Draw], None], int], ...]] = (
    (Draw.any_edits, 5),
    (Draw.hand_over, 5),
    (Draw.tamper, 4),
    (Draw.leave, 3),
    (Draw.upstream_trouble, 3),
    (Draw.admission, 3),
    (Draw.passing, 2),
    (Draw.registrations, 2),
    (Draw.marks, 2),
)


def drawn(seed: int, providers: tuple[str, str]) -> list[Step]:
    """Return the steps of the history with this seed."""
    return Draw(random.Random(seed), providers).history()
