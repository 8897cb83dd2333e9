"""Remove files from the page cache, so that they are read from the disk."""

from __future__ import annotations

import os
from pathlib import Path


def forget_cached(folder: Path) -> int:
    """Remove every file below a folder from the page cache, and return their size in bytes."""
    size = 0
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                # The kernel keeps pages that are not on the disk yet.
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            size += path.stat().st_size
    return size
