"""The kit runs only with the SDK of its own minor version."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import kubefoundry_sdk
from kubefoundry_conformance.versions import KIT, SDK, minor, versions


def run_with(sdk: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the kit where the metadata of another SDK stand before those of the installed one."""
    info = folder / f"kubefoundry_sdk-{sdk}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {SDK}\nVersion: {sdk}\n")
    return subprocess.run(
        [sys.executable, "-m", "kubefoundry_conformance", "--version"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("sdk", ["0.1.0", "0.3.0", "1.2.7", "99.0"])
def test_another_minor_version_is_refused_in_one_line(sdk: str, tmp_path: Path) -> None:
    kit = metadata.version(KIT)

    done = run_with(sdk, tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"kubefoundry-conformance: {KIT} {kit} checks providers that use {SDK} {minor(kit)}, but {SDK} {sdk} is "
        f"installed: pip install '{KIT}=={minor(sdk)}.*'\n"
    )


def test_another_patch_version_runs(tmp_path: Path) -> None:
    sdk = f"{minor(metadata.version(KIT))}.99"

    done = run_with(sdk, tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert f"{SDK} {sdk}, contract {minor(sdk)}" in done.stdout


def test_sdk_states_its_version() -> None:
    assert kubefoundry_sdk.__version__ == versions()[SDK] == metadata.version(SDK)
