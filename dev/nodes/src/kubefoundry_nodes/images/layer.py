"""Layers of an image: folders laid over the root that all images share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files by absolute path into a new folder, readable for every user whatever the umask; return the folder.

    The modes of the topmost layer's folders are those of the container's.
    """
    for name, content in files.items():
        path = folder / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder
