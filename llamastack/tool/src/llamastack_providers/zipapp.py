"""Builds the single file that runs on every image's Python: this package, PyYAML and packaging, pure Python only.

The same inputs give the same bytes: names in order, no clock, one mode. The zlib of the building Python is an input,
too.
"""

from __future__ import annotations

import importlib.metadata
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAIN: Final = """\
import os
import sys
from zipimport import zipimporter

own, plain = os.path.dirname(__file__), zipimporter.get_filename


def filename(self, name):
    if self.archive != own:
        return plain(self, name)
    path = f"{self.archive}/{self.prefix}{name.rpartition('.')[2]}"
    return f"{path}/__init__.py" if self.is_package(name) else f"{path}.py"


zipimporter.get_filename = filename

from llamastack_providers.cli import main

sys.exit(main())
"""
"""Python's own `get_filename` compiles the module, which is compiled again to be run (zipimport.py, CPython 3.10 to
3.13): a third of a start. What others pack may have compiled modules only, whose names differ."""
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_UNUSED: Final = frozenset(
    {
        # links libyaml, which an image need not have
        "yaml/cyaml.py",
        # lock files, download addresses and licence expressions: not needed
        "packaging/dependency_groups.py",
        "packaging/direct_url.py",
        "packaging/metadata.py",
        "packaging/pylock.py",
    }
)
_VENDORED: Final = (("PyYAML", "yaml"), ("packaging", "packaging"))


def contents() -> bytes:
    """Build the zipapp.

    Raises:
        PackageNotFoundError: PyYAML or packaging is not installed.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sorted(_members()):
            member = zipfile.ZipInfo(name, _EPOCH)
            member.create_system, member.external_attr = 3, 0o100644 << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content, compresslevel=9)
    return buffer.getvalue()


def build(destination: Path) -> Path:
    """Write the zipapp to a file and return its path.

    Raises:
        OSError: The file is not writable.
    """
    destination.write_bytes(contents())
    return destination


def _members() -> Iterator[tuple[str, bytes]]:
    yield "__main__.py", MAIN.encode()
    own = Path(__file__).parent
    for path in own.rglob("*"):
        if path.suffix in (".py", ".txt"):
            yield f"{own.name}/{path.relative_to(own).as_posix()}", path.read_bytes()
    for distribution, package in _VENDORED:
        yield from _vendored(distribution, package)


def _vendored(distribution: str, package: str) -> Iterator[tuple[str, bytes]]:
    """Yield the top-level modules of an installed package, and its licences, which must be included."""
    for file in importlib.metadata.files(distribution) or ():
        name = file.as_posix()
        if file.parent.as_posix() == package and file.suffix == ".py" and name not in _UNUSED:
            yield name, file.read_binary()
        elif "licenses" in file.parts and file.parts[0].endswith(".dist-info"):
            yield f"licenses/{distribution}/{file.name}", file.read_binary()
