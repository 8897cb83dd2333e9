"""The checksums of a release, in the format of `sha256sum --check`."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

NAME: Final = "SHA256SUMS"


def write(folder: Path) -> None:
    """Write the checksums of all files in a folder."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]
    (folder / NAME).write_text("".join(lines))
