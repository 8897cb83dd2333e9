"""The command line as a single file: a zip file that Python runs, with every package that it needs."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from images import wheels
from images.components import LOCKS, components
from images.debian import MACHINES
from images.tree import File
from images.wheels import SITE, Wheel

PYTHONS: Final = ("3.11", "3.12", "3.13")
GLIBC: Final = range(17, 29)
"""Minor versions of the C library whose wheels the file has. start.py checks the newest."""

LOCK_FILES: Final = (LOCKS / "cli.txt", LOCKS / "dashboard.txt")
"""The commands, and the page of `kubefoundry start`."""

PACKAGES: Final = components()["dashboard"].packages
"""The packages of the page: it also calls the command line and the providers."""

START: Final = Path(__file__).with_name("start.py")
FIRST_MOMENT: Final = (1980, 1, 1, 0, 0, 0)
INTERPRETER: Final = b"#!/usr/bin/env python3\n"


def single_file(ours: Mapping[str, Wheel], architectures: Sequence[str]) -> bytes:
    """Return the file for these architectures. Raises CalledProcessError, OSError, Failure.

    `ours`: wheels by folder of the package.
    """
    packages: dict[str, bytes] = {}
    for wheel in (ours[name] for name in PACKAGES):
        packages |= _under("any", wheel)
    for architecture in architectures:
        for python in PYTHONS:
            tag = f"cp{python.replace('.', '')}-{MACHINES[architecture]}"
            for wheel in wheels.download(LOCK_FILES, architecture, python, GLIBC):
                packages |= _under("any" if wheel.is_pure else tag, wheel)
    content = hashlib.sha256()
    for path in sorted(packages):
        content.update(f"{path} {len(packages[path])}\n".encode() + packages[path])
    files = {
        "__main__.py": START.read_bytes(),
        "content": content.hexdigest()[:16].encode(),
        **packages,
    }
    return INTERPRETER + _archive(files)


def _under(folder: str, wheel: Wheel) -> dict[str, bytes]:
    return {
        f"{folder}/{path.removeprefix(SITE + '/')}": entry.content
        for path, entry in wheels.tree(wheel).items()
        if isinstance(entry, File)
    }


def _archive(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(files):
            header = zipfile.ZipInfo(path, FIRST_MOMENT)
            header.external_attr = 0o644 << 16
            archive.writestr(header, files[path], zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
