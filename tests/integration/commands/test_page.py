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
from support import pods
from support.command_line import CommandLine
from support.deployments import GPU, model_deployment
from support.edits import ADMIN, running
from support.kinds import UPSTREAM
from support.waiting import phase, reason, serves, until_deployment

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


async def page(suite: Suite, namespace: str) -> str:
    """Return the words on the page of the model `m`."""
    access = Local(credentials.from_kubeconfig(str(suite.plane.kubeconfig)), namespace, 1)
    async with TestServer(make(access)) as server, ClientSession(cookie_jar=CookieJar(unsafe=True)) as client:
        base = f"http://127.0.0.1:{server.port}"
        await (await client.get(f"{base}/?code={access.code}")).release()
        async with client.get(f"{base}/models/{namespace}/m") as answer:
            return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", await answer.text()))


async def test_apis_of_endpoint_are_shown_on_page_and_terminal(
    suite: Suite, api: Client, namespace: str
) -> None:
    await running(
        api, namespace, {**GPU, "engine": {"type": "vllm", "args": {"runner": "generate"}}}, "dynamo"
    )

    shown = await page(suite, namespace)
    done = await CommandLine(suite.plane.kubeconfig, namespace)("status", "m")

    assert "Served as model APIs openai-chat, openai-completions" in shown
    assert re.search(r"APIs: +openai-chat, openai-completions\n", done.out)


async def test_awaited_step_of_a_start_is_shown_on_page_and_terminal(
    suite: Suite, api: Client, namespace: str
) -> None:
    stuck = {"labels": {"kubefoundry.ai/simulator-fail": "not-ready"}}
    body = model_deployment("m", namespace, GPU, provider="dynamo", **stuck)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Deploying")
    label = {"nvidia.com/dynamo-graph-deployment-name": "m"}
    await pods.pod(api, namespace, "m-0", label, pods.unschedulable("no node has a GPU"))
    await until_deployment(api, "m", namespace, lambda obj: "no node has a GPU" in obj["status"]["message"])

    shown = await page(suite, namespace)
    done = await CommandLine(suite.plane.kubeconfig, namespace)("status", "m")

    line = r"pod m-0: created \d+s, waits for a node, \d+s so far"
    assert re.search(f"Start {line}", shown)
    assert re.search(f"Start: +{line}\n", done.out)


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
