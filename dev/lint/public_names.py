"""`python dev/lint/public_names.py`: providers, the selector and all examples use only public names of the SDK.

import-linter checks packages. Half of the examples are scripts, so this reads the imports itself.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

PLACES: Final = ("providers/*/src", "selector/src", "examples")
"""Code that vendors copy, or could have written."""

SDK: Final = "kubefoundry_sdk"


def imported(statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield the full names that a statement imports."""
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
    elif statement.module:
        yield from (f"{statement.module}.{alias.name}" for alias in statement.names)


def is_private(name: str) -> bool:
    """Check whether a full name is in a private module of the SDK, or is a private name there."""
    package, *parts = name.split(".")
    return package == SDK and any(part.startswith("_") and not part.endswith("__") for part in parts)


def private_imports(source: str) -> list[tuple[int, str]]:
    """Return the line and the full name of each private import."""
    return [
        (node.lineno, name)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in imported(node)
        if is_private(name)
    ]


def main() -> int:
    """Print each private import; return the exit code."""
    paths = sorted(path for place in PLACES for root in ROOT.glob(place) for path in root.rglob("*.py"))
    count = 0
    for path in paths:
        for line, name in private_imports(path.read_text(encoding="utf-8")):
            print(
                f"{path.relative_to(ROOT)}:{line} imports {name}, which is private: use a public name of the SDK"
            )
            count += 1
    print(f"{len(paths)} modules, {count} private imports", file=sys.stderr)
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
