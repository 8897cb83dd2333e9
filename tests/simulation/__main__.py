"""`make simulate SEED=1 HISTORIES=1000`: plays random histories, and prints each that breaks an invariant.

`make simulate SEED=7 HISTORIES=1` repeats one history. A failure prints the shortest history that was found, with which
it can be repeated without its seed: `python -m simulation --replay FILE`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from typing import Final

HASHES: Final = "0"


def main() -> int:
    """Play the histories, and return 1 if one broke an invariant."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--most", type=int, default=5)
    flags = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != HASHES:
        # The order of sets of strings is part of a history.
        os.execve(sys.executable, [sys.executable, "-m", "simulation", *sys.argv[1:]], {**os.environ, "PYTHONHASHSEED": HASHES})
    from simulation.runner import shortest, started
    from simulation.steps import drawn
    begun, found, writes = time.monotonic(), 0, 0
    providers = ("dynamo", "kuberay")
    cpu = time.process_time()
    seconds = 0.0
    with started(providers) as world:
        print("start", time.monotonic() - begun)
        for seed in range(flags.seed, flags.seed + flags.histories):
            steps = drawn(seed, providers)
            t = time.monotonic()
            outcome = world.play(seed, steps)
            writes += outcome.writes
            seconds += outcome.seconds
            if outcome.violations:
                found += 1
                first = outcome.violations[0]
                print(f"seed {seed}: {len(outcome.violations)} {first.invariant} at {first.at:.2f}: {first.text[:400]}", flush=True)
                if flags.histories == 1:
                    for v in outcome.violations[:8]: print("   ", v)
                    s = shortest(world, seed, steps, lambda o: any(v.invariant == first.invariant for v in o.violations))
                    for x in s: print("    ", x)
                    o = world.play(seed, s)
                    for v in o.violations[:8]: print("   ", v)
                if found >= flags.most: break
    took = time.monotonic() - begun
    done = seed - flags.seed + 1
    print(f"{done} histories, {writes} writes, {seconds:.0f} simulated s, {found} broken, {took:.1f} s, {60*done/took:.0f} a minute")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
