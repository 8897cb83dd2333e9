"""Play random histories of core, the selector and two providers on one API server in memory.

`make simulate SEED=1 HISTORIES=1000` plays the histories with the seeds 1 to 1000. A history that breaks an invariant
is printed with its seed, the shortest history that was found, and the command that repeats it.
`make simulate-known` puts each known defect back, and shows after how many histories it is found.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from simulation.mutations import MUTATIONS, put_back

if TYPE_CHECKING:
    from simulation.history import Outcome
    from simulation.runner import Started
    from simulation.steps import Step

HASHES: Final = "0"
"""PYTHONHASHSEED: the order of sets of texts is a part of a history."""

SHOWN: Final = 3
"""Violations of a history that are printed."""


def main() -> int:
    """Run the command line, and return 1 if an invariant was broken or a known defect was not found."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--most", type=int, default=3, help="broken histories after which to stop")
    parser.add_argument("--put-back", default="", choices=("", *MUTATIONS), help="a known defect")
    parser.add_argument(
        "--known", action="store_true", help="put each known defect back, one after the other"
    )
    parser.add_argument("--only", default="", help="known defects, separated by commas")
    flags = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != HASHES:
        again = [sys.executable, "-m", "simulation", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": HASHES})
    if flags.known:
        return find_known(flags.seed, flags.histories, set(filter(None, flags.only.split(","))))
    if flags.put_back:
        put_back(flags.put_back)
    return play(flags.seed, flags.histories, flags.most)


def play(first: int, histories: int, most: int) -> int:
    """Play histories with the seeds from `first` on, until `most` of them have broken an invariant."""
    # Imported here, after a known defect was put back.
    from simulation.runner import PROVIDERS, started
    from simulation.steps import drawn

    begun, broken, done, writes, simulated = time.monotonic(), 0, 0, 0, 0.0
    with started(PROVIDERS) as world:
        for seed in range(first, first + histories):
            steps = drawn(seed, PROVIDERS)
            outcome = world.play(seed, steps)
            done, writes, simulated = done + 1, writes + outcome.writes, simulated + outcome.seconds
            if outcome.violations:
                broken += 1
                report(world, seed, steps, outcome)
                if broken >= most:
                    break
    seconds, times = time.monotonic() - begun, os.times()
    cpu = times.user + times.system + times.children_user + times.children_system
    print(
        f"simulate: seeds {first} to {first + done - 1}, {broken} of {done} histories broken, {writes} writes, "
        f"{simulated / 3600:.1f} simulated hours, {seconds:.0f} s, {cpu:.0f} s of CPU time: "
        f"{60 * done / cpu:.0f} histories in a minute of one core"
    )
    return 1 if broken else 0


def report(world: Started, seed: int, steps: list[Step], outcome: Outcome) -> None:
    """Print a broken history, and a shorter one that breaks the same invariant."""
    from simulation.invariants import INVARIANTS
    from simulation.runner import shortest

    name = outcome.violations[0].invariant
    what, rule = INVARIANTS[name]
    print(f'seed {seed} breaks "{name}": {what} ({rule})')
    shorter = shortest(
        world, seed, steps, lambda again: any(item.invariant == name for item in again.violations)
    )
    for step in shorter:
        print(f"    {step!r},")
    for violation in world.play(seed, shorter).violations[:SHOWN]:
        print(f"  {violation.at:.2f} s: {violation.invariant}: {violation.text[:600]}")
    print(f"  repeat it: make simulate SEED={seed} HISTORIES=1", flush=True)


def find_known(seed: int, histories: int, only: set[str]) -> int:
    """Put each known defect back in a process of its own, and print in which history it is found."""
    missed = []
    for name, mutation in MUTATIONS.items():
        if only and name not in only:
            continue
        if mutation.missed:
            print(f"{name:4} not simulated  {mutation.defect}: {mutation.missed}", flush=True)
            continue
        command = [sys.executable, "-m", "simulation", "--put-back", name, "--most=1"]
        command += [f"--seed={seed}", f"--histories={histories}"]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        found = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
        if done.returncode not in (0, 1) or (done.returncode == 1 and not found):
            raise SystemExit(f"{name}: the simulation failed\n{done.stdout[-3000:]}")
        if found:
            number = int(found[0].split()[1]) - seed + 1
            print(
                f"{name:4} found in {number:4}  {mutation.defect}: {found[0].split('breaks ')[1]}", flush=True
            )
        else:
            missed.append(name)
            print(f"{name:4} NOT found      {mutation.defect}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
