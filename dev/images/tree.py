"""The files of a layer, and the archive that holds them: the same bytes for the same files."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

TIME: Final = 315532800
"""Seconds since 1970 of every file: the first moment of 1980, which is also the earliest of a zip file."""


@dataclass(frozen=True, slots=True)
class File:
    """A regular file."""

    content: bytes
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that is empty, or that has another mode than 755."""

    mode: int = 0o755


Tree = Mapping[str, File | Link | Folder]
"""Entries by path, relative to the root. Folders above an entry need no entry."""


def read(folder: Path) -> dict[str, File]:
    """Return the regular files of a folder."""
    return {
        str(path.relative_to(folder)): File(path.read_bytes()) for path in folder.rglob("*") if path.is_file()
    }


def archive(tree: Tree) -> bytes:
    """Return a tar archive with sorted names. Every entry belongs to root."""
    above = {str(parent) for path in tree for parent in PurePosixPath(path).parents} - {"."}
    complete: Tree = {**dict.fromkeys(above, Folder()), **tree}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(complete):
            entry = complete[path]
            tar.addfile(_header(path, entry), io.BytesIO(entry.content) if isinstance(entry, File) else None)
    return buffer.getvalue()


def size(tree: Tree) -> int:
    """Return the bytes of all files."""
    return sum(len(entry.content) for entry in tree.values() if isinstance(entry, File))


def _header(path: str, entry: File | Link | Folder) -> tarfile.TarInfo:
    header = tarfile.TarInfo(path)
    header.mtime = TIME
    match entry:
        case File():
            header.size = len(entry.content)
            header.mode = 0o755 if entry.executable else 0o644
        case Link():
            header.type, header.linkname, header.mode = tarfile.SYMTYPE, entry.target, 0o777
        case Folder():
            header.type, header.mode = tarfile.DIRTYPE, entry.mode
    return header
