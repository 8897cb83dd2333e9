"""Versions of KubeFoundry: the sources here, and an earlier version from git."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from kubefoundry_local.control_plane import ROOT

REVISION: Final = "KUBEFOUNDRY_TEST_PREVIOUS"
"""Environment variable with the git revision of the earlier version; without it, the commit before."""


@dataclass(frozen=True)
class Version:
    """A version of KubeFoundry. `folder`: its sources. `registry`: of its images. `environment`: runs its code."""

    folder: Path
    registry: str
    environment: dict[str, str]


CURRENT: Final = Version(ROOT, "registry.example.com/current", {})


def previous_version(folder: Path) -> Version:
    """Write the sources of the earlier version into the folder. Skip the test if git lacks them."""
    extract(folder)
    return Version(folder, "registry.example.com/previous", {"PYTHONPATH": import_path(folder)})


def extract(folder: Path) -> Path:
    """Write the sources of the earlier version into the folder, and return it. Skip the test if git lacks them."""
    revision = os.environ.get(REVISION) or "HEAD~1"
    try:
        archived = subprocess.run(
            ["git", "-C", str(ROOT), "archive", revision], check=True, capture_output=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs the version {revision}, and git does not have it: {error}")
    # Python 3.11.0 to 3.11.3 has no filters. Debian 12 has one of these versions.
    safely: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(fileobj=io.BytesIO(archived)) as archive:
        archive.extractall(folder, **safely)
    return folder


def import_path(folder: Path) -> str:
    """Return the PYTHONPATH with which our programs run the code of the folder, without an installation."""
    return os.pathsep.join(
        str(path.parent.parent / "src") for path in sorted(folder.rglob("src/*/__init__.py"))
    )
