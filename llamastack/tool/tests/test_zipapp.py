"""Tests the delivered file, and the form of its input."""

from __future__ import annotations

import ast
import io
import py_compile
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import llamastack_providers
from llamastack_providers import request, zipapp

SOURCES = sorted(Path(llamastack_providers.__file__).parent.glob("*.py"))


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.integers(min_value=2**64))))
def test_request_round_trips(value: dict[str, Any]) -> None:
    assert request.decode(request.encode(value)) == value


@pytest.mark.accept("FR-022")
def test_encoded_request_is_safe_for_shell_and_kubelet() -> None:
    [text] = request.encode({"config": {"x": "$(HOME) `id` ${env.X} $$ ' \" \n;"}})

    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")


def test_zipapp_is_reproducible_and_small() -> None:
    content = zipapp.contents()

    assert content == zipapp.contents()
    assert len(content) < 700_000


def test_zipapp_is_pure_python_with_licences() -> None:
    names = zipfile.ZipFile(io.BytesIO(zipapp.contents())).namelist()

    assert [
        name for name in names if not name.endswith((".py", ".txt")) and not name.startswith("licenses/")
    ] == []
    assert {name.split("/")[1] for name in names if name.startswith("licenses/")} == {"PyYAML", "packaging"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_zipapp_is_readable_by_oldest_python(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 10))


def test_zipapp_leaves_other_archives_alone(tmp_path: Path) -> None:
    app, other_archive = zipapp.build(tmp_path / "app.pyz"), tmp_path / "other.zip"
    source, compiled = tmp_path / "compiled.py", tmp_path / "compiled.pyc"
    source.write_text("")
    py_compile.compile(str(source), str(compiled), doraise=True)
    with zipfile.ZipFile(other_archive, "w") as archive:
        archive.write(compiled, "compiled.pyc")
    script = (
        "import runpy, sys\n"
        "app, other = sys.argv[1:]\n"
        "sys.argv[1:] = ['--help']\n"
        "try:\n    runpy.run_path(app, run_name='__main__')\n"
        "except SystemExit:\n    sys.path.insert(0, other)\n"
        "import compiled\n"
        "print(compiled.__loader__.get_filename('compiled'))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", script, str(app), str(other_archive)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines()[-1] == f"{other_archive}/compiled.pyc"
