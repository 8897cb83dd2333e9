"""A copy of the checkout, for builds in another folder."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from kubefoundry_local.control_plane import ROOT


def copy_checkout(folder: Path) -> list[Path]:
    """Copy the checkout's files into a folder that shares the downloads of images. Return the copies."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    copies = []
    for name in listed.split("\0"):
        if name and (ROOT / name).is_file():
            copy = folder / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy)
            copies.append(copy)
    downloads = ROOT / "build" / "images"
    downloads.mkdir(parents=True, exist_ok=True)
    (folder / "build").mkdir()
    (folder / "build" / "images").symlink_to(downloads)
    return copies
