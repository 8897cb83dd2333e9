"""Lines of our packages that the tests executed in their own processes, from the data of coverage.py."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def measured(root: Path) -> Iterator[str]:
    """Yield the share of executed lines for each package, or why it is unknown."""
    command = (sys.executable, "-m", "coverage", "json", "--quiet", "-o", "-")
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        yield f"\nlines executed: unknown: {(done.stdout + done.stderr).strip()}"
    else:
        yield from shares(json.loads(done.stdout)["files"])


def shares(files: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the share of executed lines for all packages, then for each.

    Args:
        files: The files of coverage.py's JSON report, by path.
    """
    lines: Counter[str] = Counter()
    executed: Counter[str] = Counter()
    for path, file in files.items():
        package = path.partition("/src/")[0]
        lines[package] += file["summary"]["num_statements"]
        executed[package] += file["summary"]["covered_lines"]
    whole = 100 * executed.total() / max(lines.total(), 1)
    yield f"\nlines that tests executed in their own processes: {whole:.0f} % of {lines.total()}"
    for package in sorted(lines):
        yield f"{100 * executed[package] / max(lines[package], 1):5.0f} %  {package}"
