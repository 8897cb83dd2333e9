"""Files that have to be read from the disk."""

from __future__ import annotations

import os
from pathlib import Path


def forget_cached(folder: Path) -> int:
    """Takes every file below out of the page cache; bytes in all."""
    size = 0
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                # only what is on the disk can be forgotten
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            size += path.stat().st_size
    return size
