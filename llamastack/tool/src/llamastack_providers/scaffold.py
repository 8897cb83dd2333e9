"""`init`: the sources of a new provider that works as it is. examples/llamastack/ is what it writes."""

from __future__ import annotations

import importlib.resources
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_KINDS: Final = {"inference": "remote", "safety": "inline"}
APIS: Final = tuple(_KINDS)
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def main(folder: Path, api: str, name: str) -> int:
    """Writes the sources; the exit code."""
    if not _NAME.fullmatch(name):
        print(
            f"{name!r} cannot be a name: use lower-case words with hyphens, such as acme-echo",
            file=sys.stderr,
        )
        return 2
    if folder.exists() and any(folder.iterdir()):
        print(f"{folder} is not empty: nothing was written", file=sys.stderr)
        return 1
    for path, text in sources(api, name):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        print(f"wrote {target}")
    return 0


def sources(api: str, name: str) -> Iterator[tuple[str, str]]:
    """Every file of the new provider: path and content."""
    package = name.replace("-", "_")
    values = {"NAME": name, "PACKAGE": package, "API": api, "KIND": _KINDS[api]}
    templates = importlib.resources.files("llamastack_providers") / "templates"
    for part, below in (("common", ""), (api, f"src/{package}/")):
        for template in sorted(_files(templates / part), key=lambda one: one.name):
            text = template.read_text(encoding="utf-8")
            for key, value in values.items():
                text = text.replace(f"@{key}@", value)
            yield f"{below}{template.name.removesuffix('.txt')}", text


def _files(folder: Traversable) -> Iterator[Traversable]:
    return (one for one in folder.iterdir() if one.is_file())
