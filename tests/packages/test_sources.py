"""What the pyproject files of our packages say of one another: folders, for `make lock`, and versions."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

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


NAMES: Final = {project: tomllib.loads(project.read_text()).get("project", {}) for project in PROJECTS}
OURS: Final = {
    project: metadata
    for project, metadata in NAMES.items()
    if str(metadata.get("name", "")).startswith("kubefoundry-") and "examples" not in project.parts
}
VERSION: Final = tomllib.loads((ROOT / "sdk" / "pyproject.toml").read_text())["project"]["version"]
MINOR: Final = ".".join(VERSION.split(".")[:2])


def requirements(metadata: dict[str, Any]) -> list[str]:
    """Return the requirements of a package on ours, those of its extras included."""
    lists = [metadata.get("dependencies", []), *metadata.get("optional-dependencies", {}).values()]
    return [text for texts in lists for text in texts if text.startswith("kubefoundry-")]


@pytest.mark.parametrize("project", OURS, ids=[path.parent.name for path in OURS])
def test_our_packages_require_each_other_in_their_version(project: Path) -> None:
    metadata = OURS[project]

    pins = {re.sub(r"^[a-z-]+(\[[a-z,]+\])?", "", text) for text in requirements(metadata)}

    assert metadata["version"] == VERSION
    assert pins <= {f"=={VERSION}"}


@pytest.mark.parametrize("example", ["provider", "kserve"])
def test_provider_requires_one_minor_version_of_the_sdk(example: str) -> None:
    metadata = tomllib.loads((ROOT / "examples" / example / "pyproject.toml").read_text())["project"]
    major, minor = map(int, MINOR.split("."))

    ranges = {text.partition(">")[1] + text.partition(">")[2] for text in requirements(metadata)}

    assert ranges == {f">={MINOR},<{major}.{minor + 1}"}


def test_contract_has_the_version_of_the_sdk() -> None:
    contract = (ROOT / "docs" / "contract.md").read_text()

    assert f"This is version {MINOR} of the contract: the SDK {MINOR} implements it" in contract
