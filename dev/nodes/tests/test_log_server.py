"""The port from which the API server reads the logs of pods."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from kubefoundry_nodes.kubelet.log_server import application

PLACE = "/containerLogs/ns/pod/main"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Return the folder of a container with two runs."""
    folder = tmp_path / "ns_pod_uid" / "main"
    folder.mkdir(parents=True)
    (folder / "0.log").write_text("first\n")
    (folder / "1.log").write_text("a\nb\nc\n")
    return folder


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ("", 200, "a\nb\nc\n"),
        ("?tailLines=2", 200, "b\nc\n"),
        ("?tailLines=0", 200, ""),
        ("?tailLines=9", 200, "a\nb\nc\n"),
        ("?tailLines=2&limitBytes=3", 200, "b\nc"),
        ("?previous=true", 200, "first\n"),
        ("?previous=false&follow=false", 200, "a\nb\nc\n"),
        ("?timestamps=true", 400, "not simulated: timestamps"),
    ],
)
async def test_log_is_selected_as_by_a_kubelet(
    runs: Path, tmp_path: Path, query: str, code: int, text: str
) -> None:
    app = application(tmp_path, lambda namespace, pod: True)
    async with (
        TestServer(app) as server,
        ClientSession() as client,
        client.get(server.make_url(PLACE + query)) as answer,
    ):
        assert (answer.status, await answer.text()) == (code, text)


@pytest.mark.parametrize(
    "path", ["/containerLogs/ns/other/main", "/containerLogs/ns/pod/other", f"{PLACE}?previous=true"]
)
async def test_missing_log_is_refused(runs: Path, tmp_path: Path, path: str) -> None:
    (runs / "0.log").unlink()
    app = application(tmp_path, lambda namespace, pod: True)
    async with (
        TestServer(app) as server,
        ClientSession() as client,
        client.get(server.make_url(path)) as answer,
    ):
        assert (answer.status, "not found" in await answer.text()) == (400, True)


async def test_followed_log_grows_until_the_pod_is_gone(runs: Path, tmp_path: Path) -> None:
    gone = asyncio.Event()
    app = application(tmp_path, lambda namespace, pod: not gone.is_set())
    async with (
        TestServer(app) as server,
        ClientSession() as client,
        client.get(server.make_url(f"{PLACE}?follow=true&tailLines=1")) as answer,
    ):
        first = await answer.content.readline()
        with (runs / "1.log").open("a") as log:
            log.write("later\n")
        second = await answer.content.readline()
        gone.set()
        rest = await answer.content.read()

    assert (first, second, rest) == (b"c\n", b"later\n", b"")
