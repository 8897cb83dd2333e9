"""The page with the logs of a model, whose containers write any number of bytes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from kubefoundry_cli import pods
from kubefoundry_dashboard import talk
from kubefoundry_dashboard.rendering import LONGEST
from support.deployments import GPU, model_deployment
from support.fake_server import Answers, serving
from support.local_page import local_page


class Pods(Answers):
    """A server with a model of two pods and a log that ignores limitBytes."""

    def __init__(self, log: bytes, *names: str, node: str | None = "n") -> None:
        super().__init__()
        self.log = log
        self.ended = threading.Event()
        self.limits: list[list[str]] = []
        model = model_deployment("m", "models", GPU, generation=1, uid="u", resourceVersion="1")
        provider = {"resourceAPIVersion": "apps/v1", "resourceKind": "Deployment", "resourceName": "m"}
        model["status"] = {"provider": {"name": "direct", **provider}}
        pods = [
            {
                "metadata": {"name": name, "namespace": "models"},
                "spec": {"nodeName": node, "containers": [{"name": each} for each in names or ("c",)]},
            }
            for name in ("one", "two")
        ]
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m"}, "spec": {}}
        self.objects = {"modeldeployments": [model], "deployments": [deployment], "pods": pods}

    def to(self, path: str) -> tuple[int, Any]:
        """Return the log, or an object."""
        if "/log?" not in path:
            return super().to(path)
        if "container=hang&" in path:
            self.ended.wait()
        self.limits.append(parse_qs(urlsplit(path).query).get("limitBytes", []))
        return 200, self.log


async def read(answers: Pods, folder: Path, path: str) -> str:
    with serving(answers, folder) as kubeconfig:
        async with local_page(kubeconfig) as local:
            try:
                async with local.client.get(f"{local.base}/models/models/m/{path}") as answer:
                    return await answer.text()
            finally:
                answers.ended.set()


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


async def test_line_that_is_cut_shows_its_beginning(tmp_path: Path) -> None:
    page = await read(Pods(b"v" * 300_000 + b"\nend\n"), tmp_path, "logs")

    assert f"one/c  {'v' * LONGEST}\n" in page
    assert "one/c: the log is cut here, at 256 KiB" in page


@pytest.mark.parametrize("path", ["logs", "logs/follow"])
async def test_hidden_containers_are_counted(tmp_path: Path, path: str) -> None:
    page = await read(Pods(b"x\n", *(f"c{number:02}" for number in range(13))), tmp_path, path)

    assert "6 more containers are not shown; all: kubefoundry logs m -n models" in page
    assert page.count("  x") == talk.CONTAINERS


@pytest.mark.parametrize("path", ["logs", "logs/follow"])
async def test_as_many_containers_as_fit_are_all_shown(tmp_path: Path, path: str) -> None:
    page = await read(Pods(b"x\n", *(f"c{number:02}" for number in range(10))), tmp_path, path)

    assert "not shown" not in page
    assert page.count("  x") == talk.CONTAINERS


@pytest.mark.parametrize("path", ["logs", "logs/follow"])
async def test_pod_without_a_node_is_not_scheduled(tmp_path: Path, path: str) -> None:
    page = await read(Pods(b"", node=None), tmp_path, path)

    assert "one/c: not scheduled yet" in page
    assert "two/c: not scheduled yet" in page


async def test_log_that_does_not_arrive_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "LOG_SECONDS", 0.5)

    page = await read(Pods(b"hello\n", "ok", "hang"), tmp_path, "logs")

    assert "one/ok  hello" in page
    assert "one/hang: the rest of the log did not arrive within" in page
