"""The simulation itself: what it found before, the same seed twice, and a known defect that is put back."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubefoundry_sdk.testing._simulated import SimulatedLoop
from simulation.mutations import MUTATIONS
from simulation.runner import PROVIDERS, started
from simulation.steps import LONG, Step, drawn

DYNAMO = f"kubefoundry-provider-{PROVIDERS[0]}"

FOUND: dict[str, list[Step]] = {
    "restored condition of which core releases its part": [
        Step("create", "m", ["cpu", None], 25.0),
        Step("restore", "m", None, 0.5),
        Step("edit", "m", {"provider": {"name": "dynamo"}}, 6.0),
        Step("edit", "m", {"provider": {"name": "nobody"}}, 6.0),
    ],
    "object of a deleted model whose name is used again": [
        Step("create", "m", ["gpu", None], 25.0),
        Step("freeze", DYNAMO, 30.0, 0.0),
        Step("unfinalize", "m", None, 12.0),
        Step("second-owner", "m", None, 0.5),
        Step("delete", "m", None, 12.0),
        Step("create", "m", ["cpu", "dynamo"], 2.0),
    ],
    "registration that returns after the end": [
        Step("wait", wait=33.0),
        Step("unregister", wait=1.0),
        Step("create", LONG, ["gpu", None], 1.0),
        Step("crash", DYNAMO, 1.0, 6.0),
    ],
}
"""Shortest histories of defects that the simulation found, or that it had itself."""


def simulate(*flags: str) -> subprocess.CompletedProcess[str]:
    """Run the simulation in a process of its own, because a history depends on the order of sets of texts."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    command = [sys.executable, "-m", "simulation", *flags]
    return subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


@pytest.mark.parametrize("name", FOUND)
def test_found_defect_stays_fixed(name: str) -> None:
    with started(PROVIDERS) as world:
        outcome = world.play(1, FOUND[name])

    assert outcome.violations == []
    assert outcome.writes > 0


def test_histories_break_no_invariant() -> None:
    done = simulate("--seed=1", "--histories=8")

    assert done.returncode == 0, done.stdout


def test_same_seed_gives_same_requests() -> None:
    steps = drawn(5, PROVIDERS)

    with started(PROVIDERS) as world:
        first, second = world.play(5, steps), world.play(5, steps)

    assert first.digest == second.digest
    assert first.writes == second.writes > 0


def test_known_defect_is_found_when_put_back() -> None:
    done = simulate("--put-back=C2", "--histories=1")

    assert done.returncode == 1, done.stdout
    assert 'breaks "useless"' in done.stdout


@pytest.mark.parametrize("name", MUTATIONS)
def test_known_defect_fits_the_source(name: str) -> None:
    changes = MUTATIONS[name].changes

    for change in changes:
        spec = importlib.util.find_spec(change.module)
        assert spec is not None and spec.origin is not None
        assert change.old in Path(spec.origin).read_text(encoding="utf-8")


def test_simulated_time_passes_while_loop_is_busy() -> None:
    loop = SimulatedLoop()
    before = loop.time()

    loop.run_until_complete(_turns(3))

    assert before < loop.time() < before + 0.001


async def _turns(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)
