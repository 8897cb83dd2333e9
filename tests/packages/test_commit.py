"""The wheel of the SDK names the commit of its sources: two builds of one version differ."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import build_wheels
import pytest

ROOT: Final = Path(__file__).resolve().parents[2]


def built(folder: Path, **variables: str) -> Path:
    """Build the wheel of the SDK, and return it."""
    build_wheels.build_packages(folder, ["sdk"], build_wheels.undisturbed({**os.environ, **variables}))
    [wheel] = folder.glob("*.whl")
    return wheel


def commit_in(wheel: Path) -> str:
    return ZipFile(wheel).read("kubefoundry_sdk/commit.txt").decode().strip()


def test_wheel_names_the_commit_of_its_checkout(tmp_path: Path) -> None:
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()

    named = commit_in(built(tmp_path))

    assert commit.startswith(named.removesuffix("-dirty"))


def test_wheel_names_the_commit_of_an_image_build(tmp_path: Path) -> None:
    assert commit_in(built(tmp_path, KUBEFOUNDRY_COMMIT="0123456789ab")) == "0123456789ab"


def test_wheel_without_a_checkout_names_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(
        ROOT / "sdk", tmp_path / "copy" / "sdk", ignore=shutil.ignore_patterns("tests", "__pycache__")
    )
    monkeypatch.setattr(build_wheels, "ROOT", tmp_path / "copy")
    (tmp_path / "dist").mkdir()

    wheel = built(tmp_path / "dist")

    assert "kubefoundry_sdk/commit.txt" not in ZipFile(wheel).namelist()
