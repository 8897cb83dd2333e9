"""`make mutations`: change the code in random places with mutmut, and report each change that no unit test fails on.

mutmut changes one place at a time ("mutant") and runs the unit tests that execute the changed function. A draw of
all mutants keeps the run short. Mutants in functions that only integration tests execute are not drawn.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

WORKSPACE: Final = ROOT / "build" / "mutations"
"""A folder in the layout that mutmut requires, with its copies of the sources and of the tests."""

PACKAGES: Final = ("sdk", "core", "selector")

FLOOR: Final = 0.65
"""The least share of killed mutants. Usual are 80 %, and draws of 100 differ by 4 points (standard deviation)."""


def main() -> int:
    """Run the command line, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m support.mutations", description=__doc__)
    parser.add_argument("--mutants", type=int, default=100, help="number of mutants to draw")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="seed of the draw")
    parser.add_argument(
        "--only", default="", help="draw from the functions whose full name contains this text"
    )
    options = parser.parse_args()
    _lay_out()
    tested = [name for name in _tested() if options.only in name]
    if not tested:
        sys.stderr.write(f"mutations: unit tests execute no function whose name contains {options.only!r}\n")
        return 1
    drawn = random.Random(options.seed).sample(tested, min(options.mutants, len(tested)))
    print(f"{len(drawn)} of {len(tested)} mutants, drawn with --seed {options.seed}", flush=True)
    _mutmut("run", *drawn)
    return _report(set(drawn))


def _lay_out() -> None:
    """Create the workspace: links to the checkout, and `src` with the packages."""
    shutil.rmtree(WORKSPACE, ignore_errors=True)
    (WORKSPACE / "src").mkdir(parents=True)
    for path in ROOT.iterdir():
        if not path.name.startswith(".") and path.name not in {"build", "dist"}:
            (WORKSPACE / path.name).symlink_to(path)
    for name in PACKAGES:
        (WORKSPACE / "src" / f"kubefoundry_{name}").symlink_to(ROOT / name / "src" / f"kubefoundry_{name}")


def _tested() -> list[str]:
    """Write all mutants, and return the names of those in functions that a unit test executes.

    Raises:
        SystemExit: A unit test failed without a mutant.
    """
    folder = WORKSPACE / "mutants"
    # mutmut has no command for this alone. It ends with an error once it does not find the mutant.
    output = _mutmut("run", "no-such-mutant", check=False)
    if not (folder / "mutmut-stats.json").exists():
        raise SystemExit(
            f"{output[-4000:]}\nmutations: mutmut did not finish its first run of the unit tests"
        )
    tests = json.loads((folder / "mutmut-stats.json").read_text())["tests_by_mangled_function_name"]
    names = (
        name for meta in folder.rglob("*.meta") for name in json.loads(meta.read_text())["exit_code_by_key"]
    )
    return sorted(name for name in names if tests.get(name.partition("__mutmut_")[0]))


def _mutmut(*arguments: str, check: bool = True) -> str:
    """Run mutmut in the workspace, and return its output.

    Raises:
        SystemExit: mutmut failed.
    """
    command = [sys.executable, "-m", "mutmut", *arguments]
    done = subprocess.run(command, cwd=WORKSPACE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if check and done.returncode:
        raise SystemExit(f"{done.stdout[-4000:]}\nmutations: mutmut {arguments[0]} failed")
    return done.stdout


def _report(drawn: set[str]) -> int:
    """Print the survivors as diffs and the share of killed mutants. Return 1 if the share is below the floor."""
    pairs = (line.strip().rpartition(": ") for line in _mutmut("results", "--all", "true").splitlines())
    survivors = drawn - {name for name, _, status in pairs if status in {"killed", "timeout"}}
    for name in sorted(survivors):
        print(_mutmut("show", name), flush=True)
    killed = len(drawn) - len(survivors)
    print(
        f"{killed} of {len(drawn)} mutants were killed ({killed / len(drawn):.0%}), the floor is {FLOOR:.0%}"
    )
    return 0 if killed >= FLOOR * len(drawn) else 1


if __name__ == "__main__":
    sys.exit(main())
