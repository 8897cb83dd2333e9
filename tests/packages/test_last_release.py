"""Providers written for the last release work with today's SDK, with deprecation warnings only.

`released/VERSION` has the template of `kubefoundry provider new` (examples/provider) and examples/kserve as released.
Never edit these copies. After a release, add its copies, and remove those of the release before the last.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RELEASED = Path(__file__).with_name("released")
VERSION = "0.2.0"

OURS = r"kubefoundry_(sdk|selector)(\.\w+)+ is deprecated: import \w+( from kubefoundry_\w+(\.\w+)*)?"
"""The message of the only warnings that a released provider may cause."""


@pytest.mark.slow
@pytest.mark.parametrize("example", ["provider", "kserve"])
def test_provider_of_last_release_passes_its_tests(example: str, tmp_path: Path) -> None:
    folder = tmp_path / example
    shutil.copytree(RELEASED / VERSION / example, folder)
    warnings = tmp_path / "warnings.txt"
    (folder / "conftest.py").write_text(RECORDER.format(path=str(warnings)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "tests"]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}

    done = subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )

    assert done.returncode == 0, done.stdout
    messages = warnings.read_text().splitlines()
    assert [message for message in messages if not re.fullmatch(f"DeprecationWarning: {OURS}", message)] == []
    # used by the provider itself, so the released code was imported
    assert any("kubefoundry_sdk.refused_fields" in message for message in messages)


RECORDER = """
def pytest_warning_recorded(warning_message):
    with open({path!r}, "a") as file:
        print(f"{{warning_message.category.__name__}}: {{warning_message.message}}", file=file)
"""
"""A conftest.py that writes each warning into a file."""
