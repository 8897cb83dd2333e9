"""A model from its creation to its end: it answers, grows, changes, moves, and cuts no request meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from kubefoundry_demo import load
from kubefoundry_local.suite import Suite
from kubefoundry_nodes.llama import image
from kubefoundry_nodes.llama.hub import Hub
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, NAMESPACES, PODS
from kubefoundry_sdk._cluster.client import Client
from pods.direct.models import NAME, SERVED, created, pods, running, server, tiny, words
from support.waiting import phase, until, until_deployment
from support.wishes import change_spec

pytestmark = pytest.mark.integration


async def test_model_serves_under_restricted_pod_security(api: Client, namespace: str, models: Hub) -> None:
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    change = [{"op": "add", "path": "/metadata/labels", "value": restricted}]
    await api.json_patch(NAMESPACES, namespace, None, change, manager="test")

    made = await created(api, tiny(namespace, models))

    status = (await running(api, namespace))["status"]
    assert status["endpoint"] == {
        "service": "m-server",
        "port": 8000,
        "model": SERVED,
        "apis": ["openai-chat", "openai-completions"],
    }
    listed = await api.read(f"{server(api, namespace).root}/v1/models")
    assert [one["id"] for one in listed["data"]] == [SERVED]
    # A model of random weights may end its answer at any word.
    answer = await words(api, namespace, max_tokens=5, temperature=0, ignore_eos=True)
    assert answer.count("data: {") >= 5
    assert answer.endswith("data: [DONE]\n\n")

    await api.delete(MODEL_DEPLOYMENTS, NAME, namespace, uid=made["metadata"]["uid"])
    await until(api, MODEL_DEPLOYMENTS, NAME, namespace, lambda obj: obj is None)
    assert (await api.list(PODS, namespace))[0] == []


async def test_no_request_fails_while_a_model_changes(
    suite: Suite, api: Client, namespace: str, models: Hub
) -> None:
    await created(api, tiny(namespace, models, drain=2))
    await running(api, namespace)
    async with load.asking(api, server(api, namespace).root, SERVED) as count:
        await asyncio.to_thread(suite.plane.kubectl, "scale", f"md/{NAME}", "-n", namespace, "--replicas=2")
        await running(api, namespace, 2)

        await change_spec(api, namespace, "/spec/engine/contextLength", 1024)
        await running(api, namespace, 2)
        listed = await api.read(f"{server(api, namespace).root}/v1/models")

        leaves = (await pods(api, namespace))[0]["metadata"]
        await api.delete(PODS, leaves["name"], namespace, uid=leaves["uid"])
        await until(api, PODS, leaves["name"], namespace, lambda obj: obj is None)
        await running(api, namespace, 2)
    print(f"{count.sent} requests, {count.failed} failed")
    assert not count.failures
    assert count.sent > 20
    assert listed["data"][0]["meta"]["n_ctx"] == 1024


async def test_pod_finishes_its_answer_before_it_ends(api: Client, namespace: str, models: Hub) -> None:
    # What a busy machine takes for the answer, not how long it takes here.
    await created(api, tiny(namespace, models, drain=300, engine={"contextLength": 2048}))
    await running(api, namespace)
    [pod] = await pods(api, namespace)
    body = {
        "model": SERVED,
        "messages": [{"role": "user", "content": "ping"}],
        "max_tokens": 1000,
        "stream": True,
    }
    reported: list[bytes] = []
    # The end of the answer is a token like others: it is left out of the choice.
    body["logit_bias"] = [[2, False]]
    async for line in server(api, namespace).lines("/v1/chat/completions", body):
        if not reported:
            await api.delete(PODS, pod["metadata"]["name"], namespace, uid=pod["metadata"]["uid"])
        reported.append(line)

    assert sum(line.startswith(b"data: {") for line in reported) >= 1000
    assert reported[-2] == b"data: [DONE]\n"


async def test_model_is_handed_over_and_back(api: Client, namespace: str, models: Hub) -> None:
    # what KAITO's simulated pods serve answers nobody
    await created(api, tiny(namespace, models, verify="false", image=image.NAME))
    await running(api, namespace)

    # AIKit, which KAITO runs by itself, takes no such file
    await change_spec(api, namespace, "/spec/provider", {"name": "kaito"})
    await until_deployment(api, NAME, namespace, lambda obj: "cannot take over" in obj["status"]["message"])
    assert "data: {" in await words(api, namespace, max_tokens=1)

    runner = {"name": "kaito", "overrides": {"llamacppServer": "llama-server"}}
    await change_spec(api, namespace, "/spec/provider", runner)
    await until_deployment(
        api,
        NAME,
        namespace,
        lambda obj: phase(obj) == "Running" and obj["status"]["provider"]["resourceKind"] == "Workspace",
    )
    assert await pods(api, namespace) == []
    assert (await api.list(DEPLOYMENTS, namespace))[0] == []

    back = {"name": "direct", "overrides": {"drainSeconds": 0}}
    await change_spec(api, namespace, "/spec/provider", back)
    await until_deployment(
        api,
        NAME,
        namespace,
        lambda obj: phase(obj) == "Running" and obj["status"]["provider"]["resourceKind"] == "Deployment",
    )
    assert "data: {" in await words(api, namespace, max_tokens=1)
