"""The page's tabs of a model that the whole suite runs, read without JavaScript."""

from __future__ import annotations

import re

import pytest
from aiohttp import ClientSession, CookieJar
from aiohttp.test_utils import TestServer

from kubefoundry_dashboard.access import Local
from kubefoundry_dashboard.application import make
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from support.command_line import CommandLine
from support.deployments import GPU, model_deployment
from support.edits import ADMIN, running
from support.kinds import UPSTREAM
from support.waiting import reason, serves, until_deployment

pytestmark = pytest.mark.integration


async def test_objects_why_and_providers(suite: Suite, api: Client, namespace: str) -> None:
    obj = await running(api, namespace, GPU, "dynamo")
    pause = [{"op": "add", "path": "/metadata/annotations", "value": {names.PAUSED_ANNOTATION: "true"}}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, pause, manager="test")
    edit = [{"op": "replace", "path": "/spec/services/VllmWorker/replicas", "value": 5}]
    await api.json_patch(UPSTREAM["dynamo"], "m", namespace, edit, manager=ADMIN)
    access = Local(credentials.from_kubeconfig(str(suite.plane.kubeconfig)), namespace, 1)

    read: dict[str, str] = {}
    async with TestServer(make(access)) as server, ClientSession(cookie_jar=CookieJar(unsafe=True)) as client:
        base = f"http://127.0.0.1:{server.port}"
        await (await client.get(f"{base}/?code={access.code}")).release()
        for path in ("objects", "why", "", "events", "logs"):
            async with client.get(f"{base}/models/{namespace}/m/{path}".rstrip("/")) as answer:
                assert answer.status == 200, path
                read[path] = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", await answer.text()))
        async with client.get(f"{base}/providers") as answer:
            read["providers"] = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", await answer.text()))

    # the field of the spec, the field upstream, the value
    assert re.search(
        r"scaling\.replicas spec\.services\.VllmWorker\.replicas 1 ≠ 5 , changed by " + ADMIN, read["objects"]
    )
    assert re.search(
        r"model\.id[ ,\w.]* spec\.services\.VllmWorker\.extraPodSpec\.mainContainer\.args\[--model\] org/model",
        read["objects"],
    )
    assert "dynamo is named in the spec" in read["why"]
    assert f"generation {obj['metadata']['generation']}, taken up" in read[""]
    assert "DynamoGraphDeployment m" in read[""]
    assert "provider dynamo is ready" in read["providers"]
    assert "No pods yet" in read["logs"]


async def test_apis_of_endpoint_are_shown_on_page_and_terminal(
    suite: Suite, api: Client, namespace: str
) -> None:
    await running(
        api, namespace, {**GPU, "engine": {"type": "vllm", "args": {"runner": "generate"}}}, "dynamo"
    )
    access = Local(credentials.from_kubeconfig(str(suite.plane.kubeconfig)), namespace, 1)

    async with TestServer(make(access)) as server, ClientSession(cookie_jar=CookieJar(unsafe=True)) as client:
        base = f"http://127.0.0.1:{server.port}"
        await (await client.get(f"{base}/?code={access.code}")).release()
        async with client.get(f"{base}/models/{namespace}/m") as answer:
            shown = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", await answer.text()))
    done = await CommandLine(suite.plane.kubeconfig, namespace)("status", "m")

    assert "Served as model APIs openai-chat, openai-completions" in shown
    assert re.search(r"APIs: +openai-chat, openai-completions\n", done.out)


async def test_page_and_doctor_give_a_model_the_same_sign(suite: Suite, api: Client, namespace: str) -> None:
    edits = {
        "zero": [{"op": "add", "path": "/spec/scaling", "value": {"replicas": 0}}],
        "paused": [
            {"op": "add", "path": "/metadata/annotations", "value": {names.PAUSED_ANNOTATION: "true"}}
        ],
        "serves": [],
    }
    for name, operations in edits.items():
        await api.create(
            MODEL_DEPLOYMENTS, model_deployment(name, namespace, GPU, provider="kuberay"), manager="test"
        )
        await until_deployment(api, name, namespace, serves)
        await api.json_patch(MODEL_DEPLOYMENTS, name, namespace, operations, manager="test")
    await until_deployment(api, "zero", namespace, lambda obj: reason(obj, "Ready") == "ScaledToZero")
    kubefoundry = CommandLine(suite.plane.kubeconfig, namespace)
    access = Local(credentials.from_kubeconfig(str(suite.plane.kubeconfig)), namespace, 1)

    signs = {}
    async with TestServer(make(access)) as server, ClientSession(cookie_jar=CookieJar(unsafe=True)) as client:
        base = f"http://127.0.0.1:{server.port}"
        await (await client.get(f"{base}/?code={access.code}")).release()
        for name in edits:
            async with client.get(f"{base}/models/{namespace}/{name}") as answer:
                found = re.search(r">(.)</span> <b>ModelDeployment</b>", await answer.text())
            assert found
            doctor = await kubefoundry("doctor", name)
            signs[name] = (found[1], doctor.out[0])

    assert signs == {"zero": ("✔", "✔"), "paused": ("✗", "✗"), "serves": ("✔", "✔")}
