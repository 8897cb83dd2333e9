"""Nothing is downloaded: the containers' work in a network namespace without interfaces."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.provider_images import image
from support.provider_pod import Pod
from support.provider_server import Server

pytestmark = pytest.mark.integration

WITHOUT_NETWORK = ("unshare", "--net")


@pytest.fixture(autouse=True)
def root() -> None:
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")


@pytest.mark.accept("FR-004", "NFR-001")
def test_install(pod: Pod, tmp_path: Path) -> None:
    arguments = pod.install_arguments(image(tmp_path / "echo"), "echo")

    ended = pod.call(*arguments, within=WITHOUT_NETWORK)

    assert ended.code == 0, ended.log


@pytest.mark.accept("FR-004", "NFR-001")
def test_install_with_an_index_that_the_image_configures(pod: Pod, tmp_path: Path) -> None:
    """What is missing is not looked for anywhere."""
    arguments = pod.install_arguments(image(tmp_path / "echo", requires=["not-there"]), "echo")

    ended = pod.call(*arguments, within=WITHOUT_NETWORK, env={"PIP_INDEX_URL": "http://127.0.0.1:9/simple"})

    assert ended.code == 0, ended.log
    assert "127.0.0.1" not in ended.log


@pytest.mark.accept("PF-12")
def test_preflight(server: Server) -> None:
    ended = server.preflight(*WITHOUT_NETWORK)

    assert ended.code == 0, ended.log
