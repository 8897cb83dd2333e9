"""How the tool is called: base64 in, exit codes out, on any image's Python."""

from __future__ import annotations

import ast
import base64
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import llamastack_providers
from llamastack_providers import request, zipapp
from support.provider_images import image
from support.provider_pod import Pod

SOURCES = sorted(Path(llamastack_providers.__file__).parent.glob("*.py"))
GOOD = {"providerId": "a", "image": "i", "container": "c", "api": "inference", "order": 0}


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.integers(min_value=2**64))))
def test_what_is_encoded_is_decoded(value: dict[str, Any]) -> None:
    assert request.decode(request.encode(value)) == value


def test_a_long_input_fits_into_arguments(pod: Pod, tmp_path: Path) -> None:
    text = "x" * 300_000

    ended = pod.install(image(tmp_path / "echo"), "echo", config={"text": text})

    assert ended.code == 0, ended.log
    assert text in (pod.places.metadata / "echo" / "crd-config.yaml").read_text()


@pytest.mark.accept("FR-022")
def test_an_encoded_input_has_nothing_that_a_shell_or_the_kubelet_reads() -> None:
    [text] = request.encode({"config": {"x": "$(HOME) `id` ${env.X} $$ ' \" \n;"}})

    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")


@pytest.mark.accept("PF-01")
@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["install"],
        ["unknown"],
        ["install", "--input", "no base64!"],
        ["install", "--input", base64.b64encode(b"[]").decode()],
        ["install", "--input", base64.b64encode(b"{").decode()],
        *(
            ["install", "--input", *request.encode({**GOOD, **change})]
            for change in ({"order": -1}, {"order": True})
        ),
        *(
            ["install", "--input", *request.encode({**GOOD, **change})]
            for change in ({"api": "x"}, {"config": "x"})
        ),
        *(
            ["install", "--input", *request.encode({**GOOD, "providerId": name})]
            for name in ("", "..", "a/b")
        ),
        ["preflight", "--input", *request.encode({"image": "i"})],
        ["merge-config", "--input", *request.encode({"image": "i", "container": "c", "providers": {}})],
    ],
    ids=str,
)
def test_a_wrong_call_ends_with_2(pod: Pod, arguments: list[str]) -> None:
    ended = pod.call(
        *arguments[:1], *(["--root", str(pod.root)] if len(arguments) > 1 else []), *arguments[1:]
    )

    assert ended.code == 2, ended.log


@pytest.mark.accept("FR-030")
def test_a_file_that_cannot_be_written_is_told(pod: Pod, tmp_path: Path) -> None:
    pod.places.packages.write_text("a file where a folder has to be")

    ended = pod.install(image(tmp_path / "echo"), "echo", order=1)

    assert ended.code == 1
    assert "Code: WriteFailed" in ended.message
    assert "Provider: echo\n" in ended.message


def test_an_unexpected_error_is_a_message_as_well(pod: Pod, tmp_path: Path) -> None:
    arguments = pod.install_arguments(image(tmp_path / "echo"), "echo", order=1)
    record = pod.places.metadata / "other" / "installed.json"
    record.parent.mkdir(parents=True)
    record.write_text("{}")

    ended = pod.call(*arguments)

    assert ended.code == 1
    assert "Code: MissingMetadata" in ended.message


def test_the_zipapp_is_the_same_each_time_and_small() -> None:
    content = zipapp.contents()

    assert content == zipapp.contents()
    assert len(content) < 700_000


def test_the_zipapp_is_pure_python_with_its_licences(tool: Path) -> None:
    names = zipfile.ZipFile(tool).namelist()

    assert [
        name for name in names if not name.endswith((".py", ".txt")) and not name.startswith("licenses/")
    ] == []
    assert {name.split("/")[1] for name in names if name.startswith("licenses/")} == {"PyYAML", "packaging"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_the_oldest_python_can_read_it(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 10))


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_it_runs_on_every_python_that_is_here(pod: Pod, tmp_path: Path, version: str) -> None:
    python = shutil.which(f"python{version}")
    works = (
        python
        and subprocess.run([python, "-c", "import pip"], capture_output=True, check=False).returncode == 0
    )
    if not python or not works:
        pytest.skip(f"no python{version} with pip on PATH")

    ended = pod.call(*pod.install_arguments(image(tmp_path / "echo"), "echo"), python=python)

    assert ended.code == 0, ended.log
    assert "acme_echo/provider.py" in pod.installed()
