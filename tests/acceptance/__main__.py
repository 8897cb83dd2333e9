"""`make accept-llamastack`: runs all tests that are marked with a point of llamastack/acceptance.txt.

It fails unless each point has a test that was run and passed. The tests on pods need a network of their own; a
program of theirs makes it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from acceptance.points import LIST, ROOT, points, verdict
from behaviours.outcomes import VARIABLE, read

MARKED: Final = ("-m", "accept", "-p", "behaviours.outcomes")
FOLDERS: Final = ("llamastack/tests", "llamastack/tool/tests", "tests/integration/llamastack")
RUNS: Final = (
    (sys.executable, "-m", "pytest", *FOLDERS, *MARKED),
    (str(ROOT / "tests" / "pods" / "run"), *MARKED),
)


def main() -> int:
    """The exit code: 0 only where each point is shown, no marked test failed, and every run came to its end."""
    return accepted(RUNS, LIST.read_text(encoding="utf-8"))


def accepted(runs: Sequence[Sequence[str]], demanded: str) -> int:
    """Runs the programs, and prints the verdict on all of them together."""
    with tempfile.TemporaryDirectory(prefix="kubefoundry-acceptance-") as folder:
        outcomes = Path(folder) / "outcomes"
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), VARIABLE: str(outcomes)}
        ended = [subprocess.run(run, cwd=ROOT, env=environment, check=False).returncode for run in runs]
        found = verdict(points(demanded), read(outcomes))
    print("", *found.lines, sep="\n")
    return 0 if found.holds and not any(ended) else 1


if __name__ == "__main__":
    sys.exit(main())
