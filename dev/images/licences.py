"""The licences of Debian's packages, from their copyright files."""

from __future__ import annotations

import re
from typing import Final

from images.tree import File, Link, Tree

DOCUMENTS: Final = "usr/share/doc"
MACHINE_READABLE: Final = re.compile(r"Format: \S+/copyright-format/")
"""Start of a file in the format that Debian policy calls DEP-5."""

LICENCE: Final = re.compile(r"^License:[ \t]*(\S.*?)[ \t]*$", re.M)


def of_package(name: str, tree: Tree) -> list[str]:
    """Return Debian's names of the licences of a package's files, sorted.

    A copyright file in prose names none that a program could tell from its other words. Its path is returned instead.
    """
    path = _copyright(name, tree)
    entry = tree.get(path)
    text = entry.content.decode(errors="replace") if isinstance(entry, File) else ""
    if not MACHINE_READABLE.match(text):
        return [f"/{path}"]
    about_files = [part for part in re.split(r"\n\s*\n", text) if re.search(r"^Files:", part, re.M)]
    return sorted({licence[1] for part in about_files for licence in LICENCE.finditer(part)})


def _copyright(name: str, tree: Tree) -> str:
    """Return the path of the copyright file. Packages of one source may share the folder of one of them."""
    folder = tree.get(f"{DOCUMENTS}/{name}")
    return f"{DOCUMENTS}/{folder.target if isinstance(folder, Link) else name}/copyright"
