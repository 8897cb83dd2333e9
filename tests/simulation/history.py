"""Plays one history, and tells what it broke."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubefoundry_sdk._api import names
from kubefoundry_sdk._runtime import wall_clock
from kubefoundry_simulators.steps import FAIL_LABEL
from simulation import endings
from simulation.actions import Actions
from simulation.facts import Facts
from simulation.invariants import Violation, check
from simulation.server import Write
from simulation.steps import Step
from simulation.world import InternalErrors, World

LOOK: Final = 5.0
"""Seconds between two looks during a long step."""

LONGEST: Final = 700.0
"""Seconds for the end: a rejected write is tried again after five minutes, and some waits follow."""

SETTLES: Final = 45.0
QUIET: Final = 20.0
"""Seconds after the end in which core releases shared fields (contract §3), and then nothing is written."""


@dataclass(slots=True)
class Outcome:
    """The outcome of a history.

    Attributes:
        violations: What was broken, in the order of time.
        writes: The number of accepted writes of the components.
        digest: Identifies all requests that may write, with their times and answers.
        seconds: Simulated seconds.
        settled: Seconds from the last fault to the end.
        ends: The specs and providers of the models at the end, by name.
        state: The end, for a comparison.
    """

    violations: list[Violation] = field(default_factory=list)
    writes: int = 0
    digest: str = ""
    seconds: float = 0.0
    settled: float = 0.0
    ends: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)


class Play:
    """One history in a world that has been started."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.actions = Actions(world)
        self.facts = Facts(world, self.actions)
        self.outcome = Outcome()
        self._sampler = endings.Sampler(self.facts)
        self._digest = hashlib.sha256()
        self._begun = world.loop.time()
        self._errors = InternalErrors()
        world.server.observers.append(self._observe)

    async def run(self, steps: Sequence[Step]) -> Outcome:
        """Carry out the steps, let everything come to its end, and return the outcome."""
        log = logging.getLogger("kubefoundry_sdk")
        log.addHandler(self._errors)
        with wall_clock.set_to(self.world.now):
            for step in steps:
                self.actions.do(step)
                await self._advance(step.wait)
            await self._end()
        log.removeHandler(self._errors)
        now = self.world.loop.time()
        for text in (*self.world.ended, *self._errors.texts):
            self.outcome.violations.append(Violation("alive", now, text))
        self.outcome.writes = len(self.facts.writes)
        self.outcome.seconds = now - self._begun
        self.outcome.digest = self._digest.hexdigest()[:16]
        return self.outcome

    def _observe(self, write: Write) -> None:
        self.outcome.violations += check(self.facts, write)
        self.facts.note(write)
        line = f"{write.at:.6f} {write.by} {write.method} {write.place} {write.is_dry} {write.code}\n"
        self._digest.update(line.encode())

    async def _advance(self, seconds: float) -> None:
        left = seconds
        while left > 0:
            await self.world.loop.advance(min(left, LOOK))
            left -= LOOK
            self.outcome.violations += self._sampler.look()

    async def _end(self) -> None:
        self.world.stop_faults()
        await self._advance(3.0)
        for model in self.facts.models():
            self._tidy(model["metadata"]["name"])
        begun = self.world.loop.time()
        while obstacles := endings.ends(self.facts):
            now = self.world.loop.time()
            if now - begun > LONGEST:
                self.outcome.violations += [Violation("ends", now, text) for text in obstacles]
                return
            await self._advance(3.0)
        self.outcome.settled = self.world.loop.time() - begun
        self.outcome.violations += endings.prompt(self.facts, begun, self.outcome.settled)
        await self._advance(SETTLES)
        since = self.world.loop.time()
        await self._advance(QUIET)
        now = self.world.loop.time()
        self.outcome.violations += endings.quiet(self.facts, since)
        self.outcome.violations += endings.final(self.facts, now)
        for model in self.facts.models():
            provider = ((model.get("status") or {}).get("provider") or {}).get("name")
            if self.facts.expected(str(provider), model, model["metadata"]["generation"]) is None:
                # The chosen provider refuses it, so who serves it depends on the history.
                return
            self.outcome.ends[model["metadata"]["name"]] = [model["spec"], provider]
        self.outcome.state = json.loads(json.dumps(endings.state(self.facts)))

    def _tidy(self, name: str) -> None:
        """Take back marks and failures, remove foreign objects, and request a spec that can be served."""
        marks = (names.PAUSED_ANNOTATION, names.DRY_RUN_ANNOTATION)
        self.actions.annotate(Step("annotate", name, dict.fromkeys(marks)))
        self.actions.breaks(Step("breaks", name, None))
        live = self.actions.model(name)
        if live is not None and FAIL_LABEL in (live["metadata"].get("labels") or {}):
            self.actions.label(Step("label", name, None))
        for kind, obj in self.actions.upstream(name):
            owners = {owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()}
            if live is None or live["metadata"]["uid"] not in owners:
                self.actions.send("DELETE", kind, name, None)
        provider = ((live or {}).get("spec", {}).get("provider") or {}).get("name")
        named = provider if provider in self.world.providers else None
        change = {**SERVABLE, "provider": {"name": named, "overrides": None}}
        self.actions.edit(Step("edit", name, change))


SERVABLE: Final[dict[str, Any]] = {
    "engine": {"type": "vllm", "contextLength": None},
    "serving": {"mode": "aggregated"},
    "scaling": {"replicas": 1, "prefill": None, "decode": None},
    "resources": {"gpu": {"count": 1}, "memory": None, "cpu": None},
    "image": None,
    "env": None,
}
"""A change after which every provider can serve the spec. Model and engine arguments stay as they are."""
