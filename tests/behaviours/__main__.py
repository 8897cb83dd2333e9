"""`make behaviours`: runs the tests of every behaviour, and prints each with its outcome."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from behaviours.catalogue import ROOT, Behaviour, Outcome, behaviours, outcome
from behaviours.outcomes import VARIABLE, read

OPERATORS: Final = "tests/operators/"
PODS: Final = "tests/pods/"
"""Tests that need a network of their own; a program of theirs makes it."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m behaviours", description=__doc__)
    parser.add_argument("--section", default="", help="those of sections whose name contains this text")
    wanted = parser.parse_args().section
    chosen = [behaviour for behaviour in behaviours() if wanted in behaviour.section]
    tests = dict.fromkeys(test for behaviour in chosen for test in behaviour.tests)
    in_pods = [test for test in tests if test.startswith(PODS)]
    here = [test for test in tests if not test.startswith((OPERATORS, PODS))]
    with tempfile.TemporaryDirectory(prefix="kubefoundry-behaviours-") as folder:
        outcomes = Path(folder) / "outcomes"
        if here:
            _run([sys.executable, "-m", "pytest", *here], outcomes)
        if in_pods:
            _run([str(ROOT / PODS / "run"), *in_pods], outcomes)
        if any(test.startswith(OPERATORS) for test in tests):
            _run([str(ROOT / OPERATORS / "run")], outcomes)
        reported = {told.test: told.outcome for told in read(outcomes)}
    print("\n".join(table(chosen, reported)))
    return 0 if all(outcome(behaviour, reported)[0] in ("passed", "skipped") for behaviour in chosen) else 1


def _run(pytest: Sequence[str], outcomes: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), VARIABLE: str(outcomes)}
    subprocess.run([*pytest, "-p", "behaviours.outcomes"], cwd=ROOT, env=environment, check=False)


def table(chosen: Sequence[Behaviour], reported: dict[str, Outcome]) -> list[str]:
    """Markdown, a row a behaviour."""
    rows = []
    for behaviour in chosen:
        said, passed = outcome(behaviour, reported)
        names = "<br>".join(f"`{test}`" for test in behaviour.tests)
        rows.append(f"| {behaviour.section} | {behaviour.says} | {names} | {said} | {passed} |")
    return ["", "| section | behaviour | tests | outcome | passed |", "|---|---|---|---|---:|", *rows]


if __name__ == "__main__":
    sys.exit(main())
