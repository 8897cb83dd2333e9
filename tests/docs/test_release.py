"""docs/release.md names the versions that the tests use, and the files of this version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest
from release.single_file import PYTHONS

ROOT: Final = Path(__file__).resolve().parents[2]
TEXT: Final = (ROOT / "docs" / "release.md").read_text()


@pytest.mark.parametrize(
    ("folder", "module"),
    [
        ("", "k8s.io/kubernetes"),
        ("oldest", "k8s.io/kubernetes"),
        ("helm3", "helm.sh/helm/v3"),
        ("helm4", "helm.sh/helm/v4"),
    ],
)
def test_support_names_the_tested_version(folder: str, module: str) -> None:
    modules = (ROOT / "dev" / "devcluster" / folder / "go.mod").read_text()

    [version] = re.findall(rf"^\s*{re.escape(module)} v(\S+)", modules, re.M)

    assert re.search(rf"\b{re.escape(version)}\b", TEXT)


def test_support_names_the_pythons_of_the_single_file() -> None:
    assert f"| {', '.join(PYTHONS)} |" in TEXT


def test_commands_name_the_files_of_this_version() -> None:
    version = tomllib.loads((ROOT / "sdk" / "pyproject.toml").read_text())["project"]["version"]

    named = re.findall(r"-(\d+\.\d+\.\d+)\.(?:pyz|tar)", TEXT)

    assert set(named) == {version}
