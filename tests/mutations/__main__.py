"""`make mutations`: breaks one rule after another in a copy of the checkout, and demands that its test fails."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from mutations.catalogue import ROOT, Mutation, mutations
from mutations.checkout import Copy, copy


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mutations", description=__doc__)
    parser.add_argument("--only", default="", help="mutations whose rule or file contains this text")
    parser.add_argument(
        "--part",
        type=_part,
        default=(1, 1),
        metavar="K/N",
        help="the K-th of N equal parts, where all take too long",
    )
    options = parser.parse_args()
    wanted, (part, parts) = options.only, options.part
    chosen = [mutation for mutation in mutations() if wanted in mutation.rule or wanted in mutation.file]
    if len(chosen) < parts:
        parser.error(
            f"the rule or file of {len(chosen)} mutations contains {wanted!r}: none, or too few for {parts} parts"
        )
    chosen = chosen[len(chosen) * (part - 1) // parts : len(chosen) * part // parts]
    with tempfile.TemporaryDirectory(prefix="kubefoundry-mutations-") as folder:
        made = copy(ROOT, Path(folder))
        if problem := _fails_unmutated(made, chosen):
            sys.stderr.write(f"mutations: a test fails without any mutation:\n{problem}\n")
            return 1
        survivors = [mutation for mutation in chosen if not _caught(made, mutation)]
    print(f"\n{len(chosen) - len(survivors)} of {len(chosen)} caught")
    return 1 if survivors else 0


def _part(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is not like 2/3")
    return int(part), int(parts)


def _fails_unmutated(made: Copy, chosen: Sequence[Mutation]) -> str | None:
    started = time.monotonic()
    tests = dict.fromkeys(mutation.test for mutation in chosen)
    done = made.pytest(*tests)
    print(f"{len(tests)} tests pass without a mutation: {time.monotonic() - started:.0f} s\n", flush=True)
    return done.stdout[-4000:] + done.stderr[-1000:] if done.returncode else None


def _caught(made: Copy, mutation: Mutation) -> bool:
    """Says so. A test that cannot be collected, or whose ground does not come up, has seen nothing."""
    started = time.monotonic()
    with made.mutated(mutation):
        done = made.pytest(mutation.test)
    caught = done.returncode == 1 and f"FAILED {mutation.test}" in done.stdout
    verdict = "caught" if caught else "NOT RUN" if done.returncode else "SURVIVED"
    print(
        f"{verdict:8} {time.monotonic() - started:5.1f} s  {mutation.rule}\n"
        f"                   {mutation.file}\n                   {mutation.test}",
        flush=True,
    )
    if not caught:
        print(done.stdout[-2000:], flush=True)
    return caught


if __name__ == "__main__":
    sys.exit(main())
