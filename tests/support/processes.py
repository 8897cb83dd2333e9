"""Find processes by the files that they were started with."""

from __future__ import annotations

import os
from pathlib import Path


def processes_of(folder: Path) -> list[str]:
    """Return the command lines of other processes that were started with a file of the folder."""
    command_lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            start = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            # The process has ended, or belongs to another user.
            continue
        if str(folder).encode() in start and process.name != str(os.getpid()):
            command_lines.append(start.split(b"\0\0")[0].decode(errors="replace"))
    return command_lines
