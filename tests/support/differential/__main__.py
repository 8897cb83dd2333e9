"""`python -m support.differential --seed 1 --sequences 10000`: compares the servers, and prints each difference."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from support.differential.comparison import first_difference
from support.differential.ground import both
from support.differential.requests import SUBJECTS, Subject


def main() -> int:
    """Run the sequences, and return 1 if there was a difference."""
    parser = argparse.ArgumentParser(prog="make differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--most", type=int, default=5, help="differences after which to stop")
    parser.add_argument("--only", default="", help="the plural of one kind")
    flags = parser.parse_args()
    found, sent, started = 0, 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder, both(Path(folder)) as (real, memory):
        for seed in range(flags.seed, flags.seed + flags.sequences):
            count, difference = first_difference(seed, real, memory, only(flags.only))
            sent += count
            if difference:
                found += 1
                print(difference, end="\n\n", flush=True)
                if found >= flags.most:
                    break
    done = seed - flags.seed + 1
    print(f"{done} sequences, {sent} requests, {found} differences, {time.monotonic() - started:.0f} s")
    return 1 if found else 0


def only(plural: str) -> tuple[Subject, ...] | None:
    """Return the subject with this plural, None for all."""
    return tuple(subject for subject in SUBJECTS if subject.kind.plural == plural) or None


if __name__ == "__main__":
    sys.exit(main())
