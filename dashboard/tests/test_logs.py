"""The page with the logs of a model, whose containers write any number of bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import ClientSession, CookieJar
from aiohttp.test_utils import TestServer

from kubefoundry_dashboard import talk
from kubefoundry_dashboard.access import Local
from kubefoundry_dashboard.application import make
from kubefoundry_dashboard.rendering import LONGEST
from kubefoundry_sdk._cluster.credentials import from_kubeconfig
from support.deployments import GPU, model_deployment
from support.fake_server import Answers, serving


class Pods(Answers):
    """A server with a model of two pods and a log that ignores limitBytes."""

    def __init__(self, log: bytes) -> None:
        super().__init__()
        self.log = log
        self.limits: list[list[str]] = []
        model = model_deployment("m", "models", GPU, generation=1, uid="u", resourceVersion="1")
        provider = {"resourceAPIVersion": "apps/v1", "resourceKind": "Deployment", "resourceName": "m"}
        model["status"] = {"provider": {"name": "direct", **provider}}
        pods = [
            {
                "metadata": {"name": name, "namespace": "models"},
                "spec": {"nodeName": "n", "containers": [{"name": "c"}]},
            }
            for name in ("one", "two")
        ]
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m"}, "spec": {}}
        self.objects = {"modeldeployments": [model], "deployments": [deployment], "pods": pods}

    def to(self, path: str) -> tuple[int, Any]:
        """Return the log, or an object."""
        if "/log?" not in path:
            return super().to(path)
        self.limits.append(parse_qs(urlsplit(path).query).get("limitBytes", []))
        return 200, self.log


async def read(answers: Answers, folder: Path, path: str) -> str:
    with serving(answers, folder) as kubeconfig:
        access = Local(from_kubeconfig(str(kubeconfig), None), "models", 1)
        async with (
            TestServer(make(access)) as server,
            ClientSession(cookie_jar=CookieJar(unsafe=True)) as client,
        ):
            async with client.get(f"http://127.0.0.1:{server.port}/?code={access.code}") as page:
                await page.read()
            async with client.get(f"http://127.0.0.1:{server.port}/models/models/m/{path}") as answer:
                return await answer.text()


@pytest.mark.parametrize(
    ("log", "shown", "is_cut"),
    [
        pytest.param(b"x\n" * 10, "one/c  x", False, id="short"),
        pytest.param(
            b"x" * 100 + b"\n" + b"y" * LONGEST * 2, f"… ({LONGEST * 2} bytes)", False, id="long line"
        ),
        pytest.param((b"z" * 999 + b"\n") * 2000, "the log is cut here, at 256 KiB", True, id="many bytes"),
        pytest.param(b"w" * 10_000_000, "the log is cut here, at 256 KiB", True, id="one line without end"),
    ],
)
async def test_log_on_the_page_is_bounded(tmp_path: Path, log: bytes, shown: str, is_cut: bool) -> None:
    answers = Pods(log)

    page = await read(answers, tmp_path, "logs")

    assert shown in page
    assert ("is cut here" in page) == is_cut
    assert len(page) < 2 * talk.BYTES + 50_000
    assert answers.limits == [[str(talk.BYTES + 1)]] * 2


async def test_followed_lines_are_cut(tmp_path: Path) -> None:
    page = await read(Pods(b"v" * 1_000_000 + b"\nend\n"), tmp_path, "logs/follow")

    assert "… (1000001 bytes)" in page
    assert "one/c  end" in page
    assert len(page) < 4 * LONGEST
