"""The commit of the sources of this code. `hatch_build.py` runs this file, so it imports nothing of ours."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).resolve().parents[1] / "commit.txt"
"""Written into wheels when they are built (`hatch_build.py`)."""


def commit() -> str:
    """Return the commit that this package was built from; empty if that is unknown, as in a checkout."""
    try:
        return FILE.read_text().strip()
    except OSError:
        return ""


def describe(checkout: Path) -> str:
    """Return the commit of a checkout, with `-dirty` if files differ from it; empty if this is no checkout."""
    if not (checkout / ".git").exists():
        return ""
    command = ["git", "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty"]
    # Git's own hooks set GIT_DIR, which would name another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip()
