"""The parts of `make release` that need no build. `make test-release` makes a whole one."""

from __future__ import annotations

import io
import platform
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Final

import pytest
from release import checksums
from release.files import PACKAGES, chart_archive
from release.single_file import GLIBC, START
from release.source import is_dated

ROOT: Final = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("heading", "dated"),
    [
        ("## 1.2.3 - 2026-11-27", True),
        ("## 1.2.3", False),
        ("## 1.2.30 - 2026-11-27", False),
        ("## 1x2.3 - 2026-11-27", False),
        ("## Unreleased", False),
        ("## Unreleased\n\n## 1.2.3 - 2026-11-27", False),
        ("## 1.2.3 - 2026-11-27\n\n## 1.2.2 - 2026-11-26", True),
    ],
)
def test_changelog_begins_with_dated_section(heading: str, dated: bool) -> None:
    assert is_dated(f"# Changelog\n\n{heading}\n\n### Added\n", "1.2.3") is dated


def test_release_has_no_examples_and_no_development_tools() -> None:
    assert {"sdk", "cli", "providers/direct", "llamastack/tool"} <= set(PACKAGES)
    assert [name for name in PACKAGES if name.startswith(("dev/", "examples/"))] == []


def test_chart_archive_has_files_below_the_name_of_the_chart() -> None:
    chart = ROOT / "charts" / "kubefoundry"

    first, second = chart_archive(chart), chart_archive(chart)

    assert first == second
    with tarfile.open(fileobj=io.BytesIO(first), mode="r:gz") as archive:
        names = {member.name for member in archive if member.isfile()}
    assert names == {f"kubefoundry/{path.relative_to(chart)}" for path in chart.rglob("*") if path.is_file()}


def test_sha256sum_accepts_checksums_and_names_a_changed_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    checksums.write(tmp_path)
    command = ["sha256sum", "--check", "--quiet", "SHA256SUMS"]

    subprocess.run(command, cwd=tmp_path, check=True)
    (tmp_path / "folder" / "a").write_text("c")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (1, "folder/a: FAILED\n")


def test_single_file_names_the_pythons_that_it_has(tmp_path: Path) -> None:
    file = tmp_path / "kubefoundry.pyz"
    with zipfile.ZipFile(file, "w") as archive:
        archive.write(START, "__main__.py")
        archive.writestr("content", "0")
        archive.writestr("cp27-x86_64/a.so", "")

    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "it has cp27-x86_64. Start it with another Python, or install the wheels" in done.stderr


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("sys.modules['pwd'] = None", "home directory.; set XDG_CACHE_HOME to another folder"),
        (
            "platform.libc_ver = lambda: ('', '')",
            f"needs glibc 2.{GLIBC[-1]} or newer, and this system has another",
        ),
        (
            "platform.libc_ver = lambda: ('glibc', '2.9')",
            "this system has glibc 2.9; start it on another system",
        ),
    ],
    ids=["no home", "other library", "old library"],
)
def test_single_file_names_missing_system_requirements(tmp_path: Path, system: str, message: str) -> None:
    file = tmp_path / "kubefoundry.pyz"
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}-{platform.machine()}"
    with zipfile.ZipFile(file, "w") as archive:
        archive.write(START, "__main__.py")
        archive.writestr("content", "0")
        archive.writestr(f"{tag}/a.so", "")
    command = f"import platform, runpy, sys; {system}; runpy.run_path({str(file)!r}, run_name='__main__')"

    done = subprocess.run(
        [sys.executable, "-c", command], env={"LANG": "C.UTF-8"}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
