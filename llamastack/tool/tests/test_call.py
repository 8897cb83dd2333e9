"""Tests calls of the tool: base64 in, exit codes out, on any image's Python."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from llamastack_providers import request, service
from llamastack_providers.service import Health, Service
from support.provider_images import image
from support.provider_pod import Pod

pytestmark = pytest.mark.integration

SERVICE = {"mode": "Sidecar", "transport": "TCP", "address": "http://127.0.0.1:18400"}
GOOD = {"providerId": "a", "image": "i", "container": "c", "api": "inference", "order": 0}

WRONG_SERVICES: list[Any] = [
    [],
    {},
    {**SERVICE, "mode": "Inline"},
    {**SERVICE, "mode": []},
    {**SERVICE, "transport": "UDP"},
    {**SERVICE, "address": 1},
    {**SERVICE, "required": "yes"},
    {**SERVICE, "startSeconds": 0},
    {**SERVICE, "startSeconds": True},
    {**SERVICE, "health": 18500},
    {**SERVICE, "health": {"port": 65536, "path": "/"}},
    *(
        {**SERVICE, "health": {"port": 18500, "path": path}}
        for path in ("", "healthz", "/gesund-ü", "/a b", "/a\n", "/\x7f", "/\x00")
    ),
    {**SERVICE, "tokenFile": None},
]


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
        *(["install", "--input", *request.encode({**GOOD, "service": wrong})] for wrong in WRONG_SERVICES),
        *(
            ["preflight", "--input", *request.encode({"image": "i", "container": "c", "providers": [wrong]})]
            for wrong in (
                {"service": SERVICE},
                {"providerId": "a", "service": {**SERVICE, "address": ""}},
            )
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


def test_service_is_parsed_with_defaults() -> None:
    providers = [{"providerId": "a", "image": "i", "service": SERVICE}, {"providerId": "b", "image": "i"}]

    preflight = request.preflight({"providers": providers})
    merge = request.merge({"providers": providers})

    expected = Service("Sidecar", "TCP", "http://127.0.0.1:18400", True, 60, None, "")
    assert preflight.services == merge.services == {"a": expected}


def test_service_is_parsed_with_every_key() -> None:
    value = {
        **SERVICE,
        "required": False,
        "startSeconds": 5,
        "health": {"port": 18500, "path": "/healthz"},
        "tokenFile": "/run/lls-provider-tokens/a/token",
    }

    provider = request.provider({**GOOD, "service": value})

    health = Health(18500, "/healthz")
    address, token = "http://127.0.0.1:18400", "/run/lls-provider-tokens/a/token"
    assert provider.service == Service("Sidecar", "TCP", address, False, 5, health, token)


def test_names_of_a_service_contain_the_provider_id() -> None:
    assert service.url_variable("acme-2b") == "KUBEFOUNDRY_PROVIDER_ACME_2B_URL"
    assert service.token_file("acme-2b") == "/run/lls-provider-tokens/acme-2b/token"
