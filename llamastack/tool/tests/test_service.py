"""Tests providers that call a service: installation, merge and token."""

from __future__ import annotations

import asyncio
import os
import runpy
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import MagicMock

import pytest
import yaml

from support.provider_images import image, provider_files, spec, write_spec
from support.provider_pod import Pod
from support.provider_server import SOCKET, TCP, TOKEN_FILE, Server, asks, changed

pytestmark = pytest.mark.integration

PACKAGED: Final = {"configKey": "base_url", "transports": ["unix"], "required": True}
VARIABLE: Final = "${env.KUBEFOUNDRY_PROVIDER_ECHO_URL}"

WITH_TOKEN: Final = """
class Config:
    model_fields = {"token_file": None}
    def __init__(self, token_file, **values): ...
async def get_adapter_impl(config, deps): ...
"""
SOURCES: Final = Path(__file__).resolve().parents[3]
CLIENT: Final = SOURCES / "examples/llamastack/acme-shout/src/acme_shout/client.py"
"""Equal to its template: see test_examples_match_init."""
ERRORS: Final = ("ConnectError", "ReadError", "WriteError", "RemoteProtocolError")
HTTPX: Final = SimpleNamespace(
    AsyncClient=MagicMock(),
    AsyncHTTPTransport=MagicMock(),
    **{name: type(name, (Exception,), {}) for name in ERRORS},
)
"""A library that llama-stack has, and these tests have not."""
LEAK: Final = f"raise RuntimeError('sent ' + open(ROOT + '{TOKEN_FILE}').read())"


def service_image(folder: Path, service: Mapping[str, Any] | None) -> Path:
    """Write an image of which the metadata has `spec.service`, or has none."""
    written = image(folder)
    if service is not None:
        write_spec(written, spec(spec__service=dict(service)))
    return written


REFUSED: Final[dict[str, tuple[Mapping[str, Any] | None, dict[str, Any], str, str]]] = {
    "no metadata": (
        None,
        {"service": SOCKET},
        "ServiceMissing",
        "lls-provider-spec.yaml has no spec.service",
    ),
    "no service": (PACKAGED, {}, "ServiceNeeded", "the provider has no service"),
    "no service by default": ({}, {}, "ServiceNeeded", "the provider has no service"),
    "another transport": (PACKAGED, {"service": TCP}, "TransportUnsupported", "supports only UnixSocket"),
    "its key": (
        PACKAGED,
        {"service": SOCKET, "config": {"base_url": "http://x"}},
        "ConfigKeyTaken",
        "config.base_url is set",
    ),
}
ACCEPTED: Final[dict[str, tuple[Mapping[str, Any] | None, dict[str, Any]]]] = {
    "neither": (None, {}),
    "both": (PACKAGED, {"service": SOCKET, "config": {"url": "http://x"}}),
    "both transports by default": ({}, {"service": TCP}),
    "pods of its own": ({"transports": ["tcp"]}, {"service": {**TCP, "mode": "Deployment"}}),
    "an optional one is left out": ({**PACKAGED, "required": False}, {"config": {"base_url": "http://x"}}),
}


@pytest.mark.accept("L2-06")
@pytest.mark.parametrize("name", REFUSED)
def test_install_refuses_service_before_it_writes(pod: Pod, tmp_path: Path, name: str) -> None:
    packaged, entry, code, reason = REFUSED[name]
    before = pod.tree()

    ended = pod.install(service_image(tmp_path / "echo", packaged), "echo", **entry)

    assert ended.code == 1, ended.log
    assert f"Code: {code}" in ended.message
    assert reason in ended.message
    assert pod.tree() == before


@pytest.mark.accept("L2-06")
@pytest.mark.parametrize("name", REFUSED)
def test_lint_refuses_service_as_install_does(pod: Pod, tmp_path: Path, name: str) -> None:
    packaged, entry, code, reason = REFUSED[name]
    (tmp_path / "entry.yaml").write_text(yaml.safe_dump({"providerId": "echo", **entry}))
    folder = service_image(tmp_path / "echo", packaged)

    ended = pod.call("lint", str(folder), "--entry", str(tmp_path / "entry.yaml"))

    assert ended.code == 1, ended.log
    assert f"error: {code}: " in ended.log
    assert reason in ended.log


@pytest.mark.accept("L2-06")
@pytest.mark.parametrize("name", ACCEPTED)
def test_service_that_fits_is_installed(pod: Pod, tmp_path: Path, name: str) -> None:
    packaged, entry = ACCEPTED[name]
    (tmp_path / "entry.yaml").write_text(yaml.safe_dump({"providerId": "echo", **entry}))
    folder = service_image(tmp_path / "echo", packaged)

    linted = pod.call("lint", str(folder), "--entry", str(tmp_path / "entry.yaml"))
    ended = pod.install(folder, "echo", **entry)

    assert linted.code == 0, linted.log
    assert ended.code == 0, ended.log


ECHO: Final = {"providerId": "echo"}


def test_lint_expects_tcp_of_service_with_pods_of_its_own(pod: Pod, tmp_path: Path) -> None:
    (tmp_path / "entry.yaml").write_text(yaml.safe_dump({**ECHO, "service": {"mode": "Deployment"}}))
    folder = service_image(tmp_path / "echo", {"transports": ["unix"]})

    linted = pod.call("lint", str(folder), "--entry", str(tmp_path / "entry.yaml"))

    assert "error: TransportUnsupported: service.transport is TCP" in linted.log


NO_ENTRIES: Final[dict[str, tuple[object, str]]] = {
    "nothing": (None, "holds no provider"),
    "text": ("echo", "holds no provider"),
    "empty list": ([], "holds 0 providers"),
    "two providers": ([ECHO, ECHO], "holds 2 providers"),
    "list of texts": (["echo"], "holds no provider"),
    "whole object": (
        {"kind": "LlamaStackDistribution", "spec": {"server": {}}},
        "holds an object of kind LlamaStackDistribution",
    ),
    "object of other kind": ({"kind": 1}, "holds an object of kind 1"),
    "section": ({"inference": [ECHO]}, "providerId must be a text"),
    "no id": ({"service": {}}, "providerId must be a text"),
    "empty id": ({"providerId": ""}, "providerId must be a text"),
    "id that is no text": ({"providerId": 1}, "providerId must be a text"),
    "list as service": ({**ECHO, "service": []}, "service must be a mapping"),
    "switch as service": ({**ECHO, "service": False}, "service must be a mapping"),
    "text as config": ({**ECHO, "config": ""}, "config must be a mapping"),
    "transport": ({**ECHO, "service": {"transport": "UDP"}}, "service.transport must be"),
    "mode": ({**ECHO, "service": {"mode": 1}}, "service.mode must be"),
}


@pytest.mark.parametrize("name", NO_ENTRIES)
def test_lint_refuses_invalid_entry_by_name(pod: Pod, tmp_path: Path, name: str) -> None:
    entry, reason = NO_ENTRIES[name]
    (tmp_path / "entry.yaml").write_text(yaml.safe_dump(entry))
    folder = service_image(tmp_path / "echo", PACKAGED)

    ended = pod.call("lint", str(folder), "--entry", str(tmp_path / "entry.yaml"))

    assert ended.code == 1, ended.log
    assert "error: BadCall: " in ended.log
    assert reason in ended.log
    assert "Resolution: Correct the file of --entry." in ended.log
    assert "ServiceNeeded" not in ended.log


@pytest.mark.parametrize("name", ["missing.yaml", "folder", "file/below"])
def test_lint_names_unreadable_entry(pod: Pod, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()

    ended = pod.call("lint", str(image(tmp_path / "echo")), "--entry", str(tmp_path / name))

    assert ended.code == 1, ended.log
    assert f"error: BadCall: {tmp_path / name} cannot be read: " in ended.log
    assert "Traceback" not in ended.log


@pytest.mark.parametrize("text", ["- providerId: echo\n  service: {}\n", "providerId: echo\nservice: {}\n"])
def test_lint_accepts_entry_as_in_distribution(pod: Pod, tmp_path: Path, text: str) -> None:
    (tmp_path / "entry.yaml").write_text(text)
    folder = service_image(tmp_path / "echo", PACKAGED)

    ended = pod.call("lint", str(folder), "--entry", str(tmp_path / "entry.yaml"))

    assert ended.code == 0, ended.log


@pytest.mark.parametrize(
    ("service", "config", "expected"),
    [
        (SOCKET, None, {"base_url": VARIABLE}),
        (SOCKET, {"prefix": "x"}, {"prefix": "x", "base_url": VARIABLE}),
        (None, {"prefix": "x"}, {"prefix": "x"}),
    ],
)
def test_merge_writes_address_of_service(
    pod: Pod,
    tmp_path: Path,
    service: Mapping[str, Any] | None,
    config: Mapping[str, Any] | None,
    expected: Mapping[str, Any],
) -> None:
    described = {"service": service} if service else {}
    packaged = {**PACKAGED, "required": service is not None}
    fields = {**described, **({"config": config} if config else {})}
    assert pod.install(service_image(tmp_path / "echo", packaged), "echo", **fields).code == 0
    pod.base("version: 2\n")

    ended = merge(pod, **described)

    assert ended.code == 0, ended.log
    for name in ("run.yaml", "extra-providers.yaml"):
        [entry] = yaml.safe_load((pod.places.config / name).read_text())["providers"]["inference"]
        assert entry["config"] == expected


def merge(pod: Pod, **fields: Any) -> Any:
    providers = [{"providerId": "echo", "image": pod.images["echo"], **fields}]
    value = {"image": "distribution:1", "container": "merge-config", "providers": providers}
    return pod.command("merge-config", {**value, "modelDeployments": []})


@pytest.mark.accept("L2-21")
def test_merge_writes_new_token_for_group_at_each_run(pod: Pod, tmp_path: Path) -> None:
    assert pod.install(service_image(tmp_path / "echo", PACKAGED), "echo", service=SOCKET).code == 0
    pod.base("version: 2\n")
    tokens = []

    for _ in range(2):
        ended = merge(pod, service={**SOCKET, "tokenFile": TOKEN_FILE})
        assert ended.code == 0, ended.log
        tokens.append(pod.places.at(TOKEN_FILE).read_text())
        assert tokens[-1] not in ended.log + ended.message

    assert [len(bytes.fromhex(token)) for token in tokens] == [32, 32]
    assert tokens[0] != tokens[1]
    assert stat.S_IMODE(pod.places.at(TOKEN_FILE).stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"url": "http://x"}, {"url": "http://x", "token_file": TOKEN_FILE}),
        ({"token_file": "/mine"}, {"token_file": "/mine"}),
        (None, {"token_file": TOKEN_FILE}),
    ],
)
def test_preflight_writes_token_file_for_config_class_with_field(
    server: Server, config: object, expected: object
) -> None:
    server.provide(changed(init=WITH_TOKEN), provider_id="echo")
    server.configure(config=config)
    asks(server, required=False)

    ended = server.preflight()

    assert ended.code == 0, ended.log
    [_, entry] = yaml.safe_load(server.places.effective.read_text())["providers"]["inference"]
    assert entry["config"] == expected


def test_preflight_keeps_config_of_class_without_token_field(server: Server) -> None:
    asks(server, required=False)

    ended = server.preflight()

    assert ended.code == 0, ended.log
    assert server.places.effective.read_bytes() == (server.places.config / "run.yaml").read_bytes()


@pytest.mark.accept("L2-21")
def test_preflight_removes_token_of_service_from_messages(server: Server) -> None:
    token = "0123456789abcdef" * 4
    place = server.places.at(TOKEN_FILE)
    place.parent.mkdir(parents=True)
    place.write_text(token)
    leak = f"ROOT = {str(server.root)!r}\n{LEAK}\n"
    server.provide({**provider_files("acme_echo", "remote::acme-echo"), "acme_echo/__init__.py": leak})
    asks(server)

    ended = server.preflight()

    assert ended.code == 1, ended.log
    assert "sent (token of a provider's service)" in ended.message
    assert token not in ended.message


@pytest.mark.accept("L2-21")
@pytest.mark.parametrize("is_link", [True, False], ids=["link", "large"])
def test_preflight_reads_no_link_and_no_large_file_as_token(server: Server, is_link: bool) -> None:
    place, other = server.places.at(TOKEN_FILE), server.root / "other"
    place.parent.mkdir(parents=True)
    if is_link:
        other.write_text("no division")
        place.symlink_to(other)
    else:
        place.write_text(" " * 2**17 + "no division")
    files = provider_files("acme_echo", "remote::acme-echo")
    server.provide({**files, "acme_echo/__init__.py": "raise RuntimeError('no division')\n"})
    asks(server)

    ended = server.preflight()

    assert ended.code == 1, ended.log
    assert "RuntimeError: no division" in ended.message


@pytest.mark.accept("L2-21")
def test_client_sends_no_link_in_place_of_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "token"
    (tmp_path / "other").write_text("secret")
    token.symlink_to(tmp_path / "other")
    monkeypatch.setitem(sys.modules, "httpx", HTTPX)
    client = runpy.run_path(str(CLIENT))["Client"]("echo", "http://127.0.0.1:9", str(token))

    with pytest.raises(OSError, match="symbolic links"):
        asyncio.run(client.post("/say", {}))


def test_preflight_passes_when_service_replaced_token_by_pipe(server: Server) -> None:
    place = server.places.at(TOKEN_FILE)
    place.parent.mkdir(parents=True)
    os.mkfifo(place)
    asks(server, required=False)

    ended = server.preflight()

    assert ended.code == 0, ended.log
