"""`python dev/lint/imports.py`: import-linter with the contracts of imports.toml, for the packages that are here."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from importlinter.cli import lint_imports

ROOT: Final = Path(__file__).resolve().parents[2]
PLACES: Final = {
    "PACKAGES": ("*/src/*", "dev/*/src/*", "llamastack/*/src/*", "providers/*/src/*"),
    "PROVIDERS": ("providers/*/src/*",),
}
"""Where the packages lie that each word of imports.toml stands for."""


def packages(*places: str) -> list[str]:
    """Names of the packages that match, in order."""
    found = [folder for place in places for folder in ROOT.glob(place) if (folder / "__init__.py").exists()]
    return sorted(folder.name for folder in found)


def contracts(text: str) -> str:
    """The contracts with the names of packages for the words."""
    for word, places in PLACES.items():
        text = text.replace(f'"{word}"', ", ".join(f'"{name}"' for name in packages(*places)))
    return text


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "importlinter.toml"
        written.write_text(contracts((ROOT / "dev" / "lint" / "imports.toml").read_text()))
        return lint_imports(str(written), cache_dir=str(ROOT / ".import_linter_cache"), no_logo=True)


if __name__ == "__main__":
    sys.exit(main())
