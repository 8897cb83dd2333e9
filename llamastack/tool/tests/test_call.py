"""Tests calls of the tool: base64 in, exit codes out, on any image's Python."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path

import pytest

from llamastack_providers import request
from support.provider_images import image
from support.provider_pod import Pod

pytestmark = pytest.mark.integration

GOOD = {"providerId": "a", "image": "i", "container": "c", "api": "inference", "order": 0}


def test_long_input_fits_into_arguments(pod: Pod, tmp_path: Path) -> None:
    text = "x" * 300_000

    ended = pod.install(image(tmp_path / "echo"), "echo", config={"text": text})

    assert ended.code == 0, ended.log
    assert text in (pod.places.metadata / "echo" / "crd-config.yaml").read_text()


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
def test_wrong_call_exits_with_2(pod: Pod, arguments: list[str]) -> None:
    ended = pod.call(
        *arguments[:1], *(["--root", str(pod.root)] if len(arguments) > 1 else []), *arguments[1:]
    )

    assert ended.code == 2, ended.log


@pytest.mark.accept("FR-030")
def test_unwritable_file_is_reported(pod: Pod, tmp_path: Path) -> None:
    pod.places.packages.write_text("a file where a folder has to be")

    ended = pod.install(image(tmp_path / "echo"), "echo", order=1)

    assert ended.code == 1
    assert "Code: WriteFailed" in ended.message
    assert "Provider: echo\n" in ended.message


def test_unexpected_error_has_message(pod: Pod, tmp_path: Path) -> None:
    arguments = pod.install_arguments(image(tmp_path / "echo"), "echo", order=1)
    record = pod.places.metadata / "other" / "installed.json"
    record.parent.mkdir(parents=True)
    record.write_text("{}")

    ended = pod.call(*arguments)

    assert ended.code == 1
    assert "Code: MissingMetadata" in ended.message


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_tool_runs_on_every_installed_python(pod: Pod, tmp_path: Path, version: str) -> None:
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
