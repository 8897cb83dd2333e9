"""`python dev/lint/lengths.py`: no module has more than 400 lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

LINES: Final = 400
"""Longest module, docstrings and blank lines counted: beyond that it has more than one subject."""

SUITE: Final = "its tests share one running suite"
TABLE: Final = "half of it is one table of cases"

EXCEPTIONS: Final = {
    "core/tests/test_admission.py": TABLE,
    "core/tests/test_decision.py": TABLE,
    "llamastack/tests/test_decisions.py": TABLE,
    "sdk/tests/test_pod_causes.py": TABLE,
    "sdk/tests/test_verification.py": "its tests share one engine that the module defines",
    "tests/browser/test_page.py": "its tests share one browser and one page server",
    "tests/integration/commands/test_cli.py": SUITE,
    "tests/integration/llamastack/test_own_pods.py": SUITE,
    "tests/integration/providers/test_direct.py": SUITE,
}
"""Path of a longer module -> the reason why it is not split."""


def main() -> int:
    """Print each module that is too long, and each exception that is no longer needed; return the exit code."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py"]
    listed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout
    paths = [path for path in listed.split("\0") if path and (ROOT / path).exists()]
    lengths = {path: (ROOT / path).read_text().count("\n") for path in paths}
    longer = {path: lines for path, lines in lengths.items() if lines > LINES}
    for path, lines in longer.items():
        if path not in EXCEPTIONS:
            print(f"{path} has {lines} lines, more than {LINES}; split it, or give a reason in EXCEPTIONS")
    for path in EXCEPTIONS.keys() - longer.keys():
        print(f"{path} is no longer above {LINES} lines; remove it from EXCEPTIONS")
    print(f"{len(paths)} modules, {len(longer)} of them above {LINES} lines", file=sys.stderr)
    return int(longer.keys() != EXCEPTIONS.keys())


if __name__ == "__main__":
    sys.exit(main())
