"""What runs, by the files that it was started with."""

from __future__ import annotations

import os
from pathlib import Path


def processes_of(folder: Path) -> list[str]:
    """Command lines of the processes, but for this one, that were started with a file of that folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            said = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in said and process.name != str(os.getpid()):
            found.append(said.split(b"\0\0")[0].decode(errors="replace"))
    return found
