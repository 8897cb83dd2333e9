"""Moves staged files into the tree that all providers share, so that a kill at any moment leaves nothing behind.

The provider's record names every file before the first move, and a rerun removes the files that it names. Files get
fixed modes, directories those of the umask that `install` sets: providers' images run as different users of one
group.
"""

from __future__ import annotations

import filecmp
import os
import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from packaging.utils import canonicalize_name

from llamastack_providers.errors import Code, Failure
from llamastack_providers.record import Record, owners
from llamastack_providers.shadowing import modules

_FILE_MODE: Final = 0o664
_PROGRAM_MODE: Final = 0o775


def files_of(folder: Path) -> tuple[str, ...]:
    """Return every file below the directory, as paths with slashes, in a fixed order.

    Raises:
        OSError: A directory is not readable.
    """
    return tuple(
        sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())
    )


def to_move(
    staged: Path,
    packages: Path,
    files: Iterable[str],
    others: Mapping[str, Record],
    content: Collection[str],
) -> list[str]:
    """Return the files that no other provider has already installed.

    Args:
        staged: Directory with the unpacked wheels.
        packages: The tree of all providers.
        files: Files of this provider.
        others: Records of the other providers.
        content: Files that belong to packages in wheels, so none of them may be left out.

    Raises:
        Failure: FileClash.
        OSError: A file is not readable.
    """
    owner_of = owners(others)
    folder_of: dict[str, Record] = {}
    for path, owner in owner_of.items():
        for parent in PurePosixPath(path).parents:
            folder_of.setdefault(str(parent), owner)
    moves: list[str] = []
    for path in files:
        owner_of_parent = next(
            (owner_of[up] for up in map(str, PurePosixPath(path).parents) if up in owner_of), None
        )
        if clashing_owner := owner_of_parent or folder_of.get(path):
            raise Failure(Code.FileClash, _clash(path, clashing_owner))
        owner_of_file = owner_of.get(path)
        if owner_of_file is None:
            moves.append(path)
        elif not _may_differ(path, owner_of_file, content) and not filecmp.cmp(
            staged / path, packages / path, shallow=False
        ):
            raise Failure(Code.FileClash, _clash(path, owner_of_file))
    return moves


def remove(record: Record, packages: Path, others: Mapping[str, Record]) -> None:
    """Remove files that only this record needs, and directories that become empty.

    Raises:
        OSError: A file cannot be removed.
    """
    needed = owners(others)
    parents: set[Path] = set()
    for path in record.files:
        if path not in needed:
            (packages / path).unlink(missing_ok=True)
            parents.update((packages / path).parents)
    for folder in sorted(parents, key=lambda folder_path: len(folder_path.parts), reverse=True):
        if folder.is_relative_to(packages) and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def move(staged: Path, packages: Path, moves: Iterable[str]) -> None:
    """Move each file with one rename.

    Raises:
        OSError: A file cannot be moved.
    """
    for path in moves:
        source, target = staged / path, packages / path
        target.parent.mkdir(parents=True, exist_ok=True)
        source.chmod(_PROGRAM_MODE if source.stat().st_mode & stat.S_IXUSR else _FILE_MODE)
        os.replace(source, target)  # noqa: PTH105 - one system call, named as such


def write(path: Path, content: bytes, staging: Path) -> None:
    """Write the whole file or none of it.

    Raises:
        OSError: The file is not writable.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = staging / "draft"
    draft.write_bytes(content)
    draft.chmod(_FILE_MODE)
    os.replace(draft, path)  # noqa: PTH105


def shared(files: Iterable[str], moved: Iterable[str], others: Mapping[str, Record]) -> list[str]:
    """Return warnings about files that several providers have.

    They are scripts that stay another provider's, and packages that two providers share.
    """
    owner_of = owners(others)
    unmoved = sorted(set(files) - set(moved))
    warnings = [
        f"script {path} was not installed: provider '{owner_of[path].provider_id}' has one of that name"
        for path in unmoved
        if _is_script(path)
    ]
    owner_of_package = {top: owner_of[path] for top, path in modules(owner_of).items() if "/" in path}
    own_packages = {path.partition("/")[0] for path in moved if "/" in path}
    warnings += [
        f"package '{top}' also comes from provider '{owner_of_package[top].provider_id}'; "
        "the files of both are installed"
        for top in sorted(own_packages & set(owner_of_package))
    ]
    return warnings


def _may_differ(path: str, owner: Record, content: Collection[str]) -> bool:
    """Check whether equal packages may differ in the file.

    Such files are pip's own records, and the Python's path in scripts. Neither is used from a directory on
    PYTHONPATH. A file of a package that is called `bin` is not a script.
    """
    folder, _, _ = path.partition("/")
    name = canonicalize_name(folder.removesuffix(".dist-info").rpartition("-")[0] or folder)
    is_metadata = folder.endswith(".dist-info") and any(
        package.name == name for package in owner.distributions
    )
    return is_metadata or (_is_script(path) and path not in content)


def _is_script(path: str) -> bool:
    parts = PurePosixPath(path)
    return parts.parts[0] == "bin" and len(parts.parts) == 2 and parts.suffix not in (".py", ".so", ".pyc")


def _clash(path: str, owner: Record) -> str:
    return f"{path} already exists with other content, from provider '{owner.provider_id}' (image: {owner.image})"
