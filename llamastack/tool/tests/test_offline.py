"""Tests that nothing is downloaded: the containers run in a network namespace without interfaces."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from llamastack_providers import staging
from support.provider_images import image, wheel
from support.provider_pod import Pod
from support.provider_server import Server

pytestmark = pytest.mark.integration

WITHOUT_NETWORK = ("unshare", "--net")


root = pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")


@pytest.mark.accept("FR-004", "NFR-001")
def test_pip_uses_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noted = tmp_path / "noted"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "$@" > {noted}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    staging.fresh(tmp_path / "staging")

    staging.unpack([wheel(tmp_path, "acme-echo")], tmp_path / "staging")

    words = noted.read_text().split()
    assert words[:4] == ["-I", "-m", "pip", "install"]
    assert {"--no-index", "--isolated", "--no-deps"} <= set(words)


@root
@pytest.mark.accept("FR-004", "NFR-001")
def test_install_works_offline(pod: Pod, tmp_path: Path) -> None:
    arguments = pod.install_arguments(image(tmp_path / "echo"), "echo")

    ended = pod.call(*arguments, within=WITHOUT_NETWORK)

    assert ended.code == 0, ended.log


@root
@pytest.mark.accept("FR-004", "NFR-001")
def test_install_ignores_index_of_image(pod: Pod, tmp_path: Path) -> None:
    """pip must not search an index for a missing package."""
    arguments = pod.install_arguments(image(tmp_path / "echo", requires=["not-there"]), "echo")

    ended = pod.call(*arguments, within=WITHOUT_NETWORK, env={"PIP_INDEX_URL": "http://127.0.0.1:9/simple"})

    assert ended.code == 0, ended.log
    assert "127.0.0.1" not in ended.log


@root
@pytest.mark.accept("PF-12")
def test_preflight_works_offline(server: Server) -> None:
    ended = server.preflight(*WITHOUT_NETWORK)

    assert ended.code == 0, ended.log
