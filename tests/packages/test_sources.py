"""Folders that pyproject files name as the sources of our packages: `make lock` reads them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
PROJECTS: Final = [
    project
    for pattern in ("*", "dev/*", "providers/*", "llamastack/*", "examples/*")
    for project in sorted(ROOT.glob(f"{pattern}/pyproject.toml"))
]


@pytest.mark.parametrize("project", PROJECTS, ids=[str(path.parent.relative_to(ROOT)) for path in PROJECTS])
def test_sources_of_a_package_exist(project: Path) -> None:
    settings = tomllib.loads(project.read_text())
    sources = settings.get("tool", {}).get("uv", {}).get("sources", {})

    missing = [
        name
        for name, source in sources.items()
        if not (project.parent / source["path"] / "pyproject.toml").exists()
    ]

    assert missing == []
