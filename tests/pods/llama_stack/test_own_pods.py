"""A provider's service with pods of its own behind a real llama-stack server: start, scaling, rollout, outage."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest

from kubefoundry_llamastack.degradation import DEPLOYMENT_REASONS
from kubefoundry_llamastack.names import DEPLOYMENTS, LLSD, PODS
from kubefoundry_local.suite import Suite
from kubefoundry_nodes.images import layer
from kubefoundry_nodes.kubelet.image import Image
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from pods.images import provider
from pods.images.provider import SHOUT
from pods.llama_stack.distributions import (
    STARTED,
    entry,
    server,
    serving_pod,
    stack,
    until_ready,
    until_rolled_out,
)
from pods.llama_stack.load import PREFIX, Load
from pods.rig import end_pods
from support.llamastack import condition_of, edit, reason, until_object, until_status
from support.own_pods import own_label

pytestmark = pytest.mark.integration

NAME: Final = "chat-shout-provider"
FIRST, SECOND = "example.com/shout-service:1", "example.com/shout-service:2"
LATE: Final = 20
"""Seconds that the service waits before it starts for the first time."""
LATE_COMMAND: Final = ["sh", "-c", f"sleep {LATE}; exec {' '.join(provider.SERVICE)}"]
ROUNDS: Final = 5
"""Good answers of each pod after a change."""


def service_image(name: str, folder: Path) -> Image:
    """An image of the service alone, which adds the image's name and the pod's to its answers."""
    source, uppercase = provider.example("acme-shout")["service.py"], '["text"]).upper()'
    assert source.count(uppercase) == 1
    source = source.replace(uppercase, f'{uppercase} + " {name} " + socket.gethostname()')
    files = {provider.SERVICE[1]: source.encode()}
    return Image(name, (layer.write(folder, files),), command=provider.SERVICE, user=provider.USER)


@dataclass(frozen=True, slots=True)
class Chat:
    """A LlamaStackDistribution `chat` that serves, with one pod.

    waiting: its status before the service was available. early: the Deployments that existed then.
    pod: the server's pod.
    """

    namespace: str
    waiting: Object
    early: list[str]
    pod: Object


@pytest.fixture(scope="module")
def chat(
    suite: Suite, node: Node, served_images: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Chat]:
    """It serves before the first test looks, in a namespace of the strictest Pod Security level."""
    for name in (FIRST, SECOND):
        node.add(service_image(name, tmp_path_factory.mktemp("service")))
    namespace = f"own-pods-{uuid.uuid4().hex[:8]}"
    suite.plane.kubectl("create", "namespace", namespace)
    suite.plane.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    yield asyncio.run(started(suite, namespace))
    end_pods(suite, namespace)


async def started(suite: Suite, namespace: str) -> Chat:
    """Create the CR, and wait until all is well."""
    admin = credentials.from_kubeconfig(str(suite.plane.kubeconfig))
    service = {"mode": "Deployment", "image": FIRST, "command": LATE_COMMAND}
    providers = {"inference": [{**entry("shout", SHOUT, prefix="shout: "), "service": service}]}
    async with Client(admin, user_agent="test") as api:
        await api.create(LLSD, stack("chat", namespace, externalProviders=providers), manager="user")
        waiting = await until_status(
            api, "chat", namespace, lambda status: reason(status, "DeploymentReady") == "WaitingForProviders"
        )
        early, _ = await api.list(DEPLOYMENTS, namespace)
        await until_ready(api, "chat", namespace)
        pod = await serving_pod(api, "chat", namespace)
        return Chat(namespace, waiting, [item["metadata"]["name"] for item in early], pod)


async def own_pods(api: Client, namespace: str) -> list[Object]:
    """The pods of the service."""
    items, _ = await api.list(PODS, namespace, selector={"labelSelector": own_label("chat")})
    return items


async def edit_service(api: Client, namespace: str, **fields: object) -> None:
    """Set fields of the service in the CR."""

    def update(cr: Object) -> None:
        cr["spec"]["server"]["externalProviders"]["inference"][0]["service"].update(fields)

    await edit(api, "chat", namespace, update)


async def roll_out(api: Client, namespace: str, *, image: str, replicas: int, **fields: object) -> None:
    """Edit the service, and wait until that many pods run the image and no others."""
    await edit_service(api, namespace, image=image, replicas=replicas, **fields)

    def is_written(live: Object) -> bool:
        [container] = live["spec"]["template"]["spec"]["containers"]
        return (container["image"], live["spec"]["replicas"]) == (image, replicas)

    live = await until_object(api, DEPLOYMENTS, NAME, namespace, is_written)
    await until_rolled_out(api, NAME, namespace, generation=live["metadata"]["generation"])


async def answers_of(load: Load, image: str, replicas: int) -> None:
    """Wait until as many pods of this image have answered several requests each from now on."""

    def answered(answers: Counter[str]) -> bool:
        often = [text for text, count in answers.items() if text.startswith(f" {image} ") and count >= ROUNDS]
        return len(often) == replicas

    await load.until(answered)


@pytest.mark.accept("L2-26")
async def test_server_is_created_after_late_service_is_available(api: Client, chat: Chat) -> None:
    live = await api.get(DEPLOYMENTS, "chat", chat.namespace)
    [pod] = await own_pods(api, chat.namespace)
    [state] = pod["status"]["containerStatuses"]
    ready = find(pod["status"]["conditions"], "Ready")

    assert (chat.waiting["phase"], chat.early) == ("Pending", [NAME])
    assert ready is not None
    available = datetime.fromisoformat(ready["lastTransitionTime"])
    began = datetime.fromisoformat(state["state"]["running"]["startedAt"])
    assert (available - began).total_seconds() >= LATE
    assert datetime.fromisoformat(live["metadata"]["creationTimestamp"]) >= available
    assert live["metadata"]["generation"] == 1
    assert [item["restartCount"] for item in chat.pod["status"]["containerStatuses"]] == [0]


@pytest.mark.accept("L2-26")
async def test_chat_reaches_own_pod_of_service(api: Client, chat: Chat) -> None:
    live = await server(api, "chat", chat.namespace)

    answer = await live.chat("shout/echo-1", "ping")
    listed = await live.providers()

    [pod] = await own_pods(api, chat.namespace)
    assert (answer.status, answer.body) == (200, f"{PREFIX} {FIRST} {pod['metadata']['name']}")
    assert listed["shout"]["config"]["url"] == f"http://{NAME}.{chat.namespace}.svc"
    assert pod["status"]["podIP"] != chat.pod["status"]["podIP"]


@pytest.mark.accept("L2-25")
async def test_service_is_scaled_and_rolled_under_load(
    api: Client, suite: Suite, chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    load = Load(await server(api, "chat", chat.namespace))

    async with asyncio.TaskGroup() as group:
        clients = [group.create_task(load.run()) for _ in range(2)]
        await load.busy.wait()
        await roll_out(api, chat.namespace, image=FIRST, replicas=3)
        await answers_of(load, FIRST, 3)
        await roll_out(api, chat.namespace, image=SECOND, replicas=3, command=[])
        await answers_of(load, SECOND, 3)
        await roll_out(api, chat.namespace, image=SECOND, replicas=1)
        await answers_of(load, SECOND, 1)
        for client in clients:
            client.cancel()

    pods = len(load.answers)
    with capsys.disabled():
        print(
            f"\nservice with own pods scaled 1 to 3, rolled, scaled to 1 under load: {load.sent} requests sent, "
            f"{len(load.failed)} failed, answers from {pods} pods"
        )
    assert load.failed == []
    assert pods == 6
    assert (await api.get(DEPLOYMENTS, "chat", chat.namespace))["metadata"]["generation"] == 1
    await assert_same_server(api, chat)
    assert outages(suite, chat.namespace) == []


def outages(suite: Suite, namespace: str) -> list[str]:
    """The messages of Events about failed services."""
    events = json.loads(suite.plane.kubectl("get", "events", "-n", namespace, "-o", "json").stdout)["items"]
    return [item["message"] for item in events if item["reason"] in DEPLOYMENT_REASONS]


async def assert_same_server(api: Client, chat: Chat) -> None:
    """Check that the only pod of the server is the first one, and that its containers have not restarted."""
    pod = await serving_pod(api, "chat", chat.namespace)
    assert pod["metadata"]["uid"] == chat.pod["metadata"]["uid"]
    assert [item["restartCount"] for item in pod["status"]["containerStatuses"]] == [0]


@pytest.mark.accept("L2-26")
async def test_server_stays_while_service_has_no_pods(api: Client, chat: Chat) -> None:
    live = await server(api, "chat", chat.namespace)

    await edit_service(api, chat.namespace, replicas=0)
    status = await until_status(
        api,
        "chat",
        chat.namespace,
        lambda seen: "scaled to 0" in condition_of(seen, "ProviderDegraded").get("message", ""),
        seconds=STARTED,
    )
    without = await live.chat("shout/echo-1", "ping")
    await assert_same_server(api, chat)
    await roll_out(api, chat.namespace, image=SECOND, replicas=1)
    restored = await live.chat("shout/echo-1", "ping")

    assert (reason(status, "ProviderDegraded"), status["phase"]) == ("ServiceNotReady", "Ready")
    assert without.status == 500
    assert restored.status == 200
    await assert_same_server(api, chat)
