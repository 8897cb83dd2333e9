"""What comes piece by piece: a log that is followed, and an answer of a model, in a real Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from browser.page_server import page_server, tab
from kubefoundry_direct.names import SELECTED_BY
from kubefoundry_local.control_plane import ControlPlane
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, SERVICES
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.engine import Engine, led_to, listening
from support.kubelet import kubelet

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

PORT = 8000


async def serving(api: Client, namespace: str, name: str) -> None:
    """A model of provider direct that serves, and what it has upstream."""
    labels, port = {SELECTED_BY: name}, {"name": "http", "port": PORT}
    container = {"name": "main", "image": "example.com/engine:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    for kind, spec in (
        (DEPLOYMENTS, {"selector": {"matchLabels": labels}, "template": template}),
        (SERVICES, {"ports": [port]}),
    ):
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec}
        await api.create(kind, {**body, "metadata": {"name": name, "namespace": namespace}}, manager="test")
    await api.create(MODEL_DEPLOYMENTS, model_deployment(name, namespace, GPU), manager="test")
    status = {
        "phase": "Running",
        "provider": {
            "name": "direct",
            "resourceAPIVersion": "apps/v1",
            "resourceKind": "Deployment",
            "resourceName": name,
        },
        "endpoint": {"service": name, "port": PORT},
    }
    change = [{"op": "add", "path": "/status", "value": status}]
    await api.json_patch(MODEL_DEPLOYMENTS, name, namespace, change, manager="test", subresource="/status")


async def test_log_is_followed_line_by_line_until_the_page_is_left(
    cluster: ControlPlane, api: Client, namespace: str, browser: Browser, tmp_path: Path
) -> None:
    await serving(api, namespace, "m")
    async with (
        kubelet(api, f"node-{namespace}", tmp_path / "kubelet") as node,
        page_server(cluster, namespace) as server,
        tab(browser, server) as seen,
    ):
        await node.pod(api, namespace, "m-0", {SELECTED_BY: "m"})
        await node.write("first line")
        await seen.page.goto(f"{server.base}/models/{namespace}/m/logs")
        log = seen.page.locator("#log")
        await expect(log).to_contain_text("first line")

        await seen.page.get_by_label("Follow").check()
        await node.until_followed()
        await node.write("second <b>line</b>")
        await expect(log).to_contain_text("second <b>line</b>")
        await node.write("third line")
        await expect(log).to_contain_text("third line")

        await seen.page.goto(server.base)
        await node.until_left()
        assert seen.wrong == []


async def test_answer_is_on_the_page_while_the_model_makes_it(
    cluster: ControlPlane, api: Client, namespace: str, browser: Browser
) -> None:
    await serving(api, namespace, "m")
    engine = Engine("model")
    async with (
        listening(engine) as port,
        page_server(cluster, namespace) as server,
        tab(browser, server) as seen,
    ):
        await led_to(api, namespace, "m", port)
        await seen.page.goto(f"{server.base}/models/{namespace}/m/chat")
        await seen.page.get_by_label("Question").fill("Say hello.")
        await seen.page.get_by_role("button", name="Ask").click()
        answer = seen.page.locator(".answer")

        # each piece is waited for before the next one is made
        for piece, reported in (("Hel", "Hel"), ("lo <b>", "Hello <b>"), ("world", "Hello <b>world")):
            engine.words.put_nowait(piece)
            await expect(answer).to_have_text(reported)

        engine.words.put_nowait(None)
        assert seen.wrong == []
