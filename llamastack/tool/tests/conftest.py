"""Provides the tool as the operator delivers it, and pods that run it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from llamastack_providers import zipapp
from support.provider_images import image
from support.provider_pod import Pod, python_with_pip
from support.provider_server import GOOD, Server


@pytest.fixture(scope="session")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the zipapp.

    Python keeps compiled files there. It would compile a zipapp at each start, which would be half of these
    tests' cost.
    """
    folder = tmp_path_factory.mktemp("tool")
    with zipfile.ZipFile(io.BytesIO(zipapp.contents())) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the Python of the images.

    The Python of these tests is unsuitable: pip and the tool read the metadata of all its packages, and pip
    runs code of some.
    """
    return python_with_pip(tmp_path_factory.mktemp("python"))


@pytest.fixture
def pods(tmp_path: Path, tool: Path, python: str) -> Callable[[str], Pod]:
    """Return a function that makes pods, each with a volume of its own."""

    def make(name: str) -> Pod:
        pod = Pod(tmp_path / name, tool, python=python)
        pod.shared.mkdir(parents=True)
        return pod

    return make


@pytest.fixture
def pod(pods: Callable[[str], Pod]) -> Pod:
    return pods("pod")


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory, tool: Path, python: str) -> Pod:
    """Return a pod whose first provider is installed, to be copied."""
    folder = tmp_path_factory.mktemp("begun")
    pod = Pod(folder / "pod", tool, python=python)
    assert pod.install(image(folder / "first", "acme-first"), "first").code == 0
    return pod


@pytest.fixture
def server(tmp_path: Path, tool: Path, python: str) -> Server:
    """Return a pod with one good provider, about to start the server."""
    server = Server(tmp_path / "pod", tool, python=python)
    server.distribution()
    server.provide(GOOD)
    server.configure(config={"url": "http://x"})
    return server
