"""Runs histories: each in a fork of a world that has been started once, so that a history costs no start."""

from __future__ import annotations

import gc
import json
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from kubefoundry_sdk.testing._simulated import SimulatedLoop
from simulation.history import Outcome, Play
from simulation.invariants import Violation
from simulation.steps import Step
from simulation.world import World, determined

PROVIDERS: Final = ("dynamo", "kuberay")
DEADLINE: Final = 60
"""Seconds of real time for one history."""


class Started:
    """A world that has been started. Each history begins with it."""

    def __init__(self, loop: SimulatedLoop, world: World) -> None:
        self._loop = loop
        self._world = world
        self._ends: dict[str, dict[str, Any]] = {}

    def play(self, seed: int, steps: Sequence[Step]) -> Outcome:
        """Play a history in a process of its own, and compare its end with that of a run without faults."""
        outcome = self._forked(seed, steps)
        if outcome.state and not outcome.violations:
            expected = self._calm(outcome)
            if expected and outcome.state != expected:
                text = difference(expected, outcome.state)
                outcome.violations.append(Violation("equal", outcome.seconds, text))
        return outcome

    def _calm(self, outcome: Outcome) -> dict[str, Any]:
        """Return the end of a run that only creates the models of an outcome's end."""
        key = json.dumps(outcome.ends, sort_keys=True)
        if key not in self._ends:
            steps = [Step("copy", name, value, 0.0) for name, value in outcome.ends.items()]
            self._ends[key] = self._forked(0, steps).state
        return self._ends[key]

    def _forked(self, seed: int, steps: Sequence[Step]) -> Outcome:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            self._child(seed, steps, write)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            raw = pipe.read()
        _, status = os.waitpid(child, 0)
        if status:
            problem = (
                f"the process of the history ended with {status}: {raw[-2000:].decode(errors='replace')}"
            )
            return Outcome([Violation("alive", 0.0, problem)])
        content = json.loads(raw)
        content["violations"] = [Violation(*item) for item in content["violations"]]
        return Outcome(**content)

    def _child(self, seed: int, steps: Sequence[Step], pipe: int) -> None:
        code = 1
        try:
            signal.alarm(DEADLINE)
            gc.disable()
            self._world.reseed(seed)
            outcome = self._loop.run_until_complete(Play(self._world).run(steps))
            text = json.dumps({name: getattr(outcome, name) for name in Outcome.__slots__})
            code = 0
        except BaseException as error:
            text = "".join(traceback.format_exception(error))
        finally:
            with os.fdopen(pipe, "wb") as out:
                out.write(text.encode())
            os._exit(code)


@contextmanager
def started(providers: tuple[str, str]) -> Iterator[Started]:
    """Start a world."""
    loop = SimulatedLoop()
    with determined(0, loop.time):

        async def begin() -> World:
            world = World(providers, 0)
            await world.start()
            await warm_up(world)
            return world

        world = loop.run_until_complete(begin())
        gc.collect()
        gc.freeze()
        try:
            yield Started(loop, world)
        finally:
            gc.unfreeze()
            loop.run_until_complete(world.end())
            loop.close()


async def warm_up(world: World) -> None:
    """Let a model of each provider come and go, so that forks find caches filled."""
    play = Play(world)
    steps = [Step("create", f"w{provider}", ["gpu", provider], 0.0) for provider in world.providers]
    steps += [Step("wait", wait=20.0), *(Step("delete", step.on) for step in steps), Step("wait", wait=5.0)]
    for step in steps:
        play.actions.do(step)
        await world.loop.advance(step.wait)
    world.server.observers.clear()
    world.forget()


def difference(expected: Any, seen: Any, at: str = "") -> str:
    """Return the first difference of two values."""
    if isinstance(expected, dict) and isinstance(seen, dict):
        for name in sorted({*expected, *seen}):
            if expected.get(name) != seen.get(name):
                return difference(expected.get(name), seen.get(name), f"{at}.{name}")
    return f"{at}: {json.dumps(seen)[:300]} instead of {json.dumps(expected)[:300]}"


Found = Callable[[Outcome], bool]


def shortest(
    world: Started, seed: int, steps: Sequence[Step], is_found: Found, tries: int = 60
) -> list[Step]:
    """Return a shorter history with the same finding: steps are left out as long as it stays."""
    best, size = list(steps), max(1, len(steps) // 2)
    while tries > 0:
        for start in range(0, len(best), size):
            shorter = best[:start] + best[start + size :]
            tries -= 1
            if tries >= 0 and shorter and is_found(world.play(seed, shorter)):
                best = shorter
                break
        else:
            if size == 1:
                break
            size = max(1, size // 2)
    return best
