"""Two versions of one package, in the server and in a sidecar, and the packets that their pod sends."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from kubefoundry_llamastack.names import LLSD
from kubefoundry_local.suite import Suite
from kubefoundry_nodes.images import layer
from kubefoundry_nodes.kubelet import addresses
from kubefoundry_nodes.kubelet.image import Image
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from pods.capture import Packet, capturing
from pods.example_pods import PLAIN, container, pod, run
from pods.images import provider
from pods.llama_stack.distributions import entry, server, serving_pod, stack, until_ready
from pods.rig import end_pods

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

LEFT, RIGHT = "example.com/acme-left:1", "example.com/acme-right:1"
RESOLVING: Final = "example.com/resolving-distribution:1"
RESOLVER: Final = {
    "/etc/resolv.conf": f"nameserver {addresses.NODE}\noptions timeout:1 attempts:1\n".encode()
}
"""Sends every question for a name that no hosts file has to the node, where it is counted."""

IMPORT: Final = "import acme_common\n"

CALLS: Final = """
import socket
try: socket.getaddrinfo("example.com", 80)
except OSError: pass
try: socket.create_connection(("10.244.0.1", 9), 1)
except OSError: pass
"""


def left() -> dict[str, str]:
    """A provider in the server, which answers with the version of acme-common that it has: 1.0."""
    files = provider.scaffolded("inference", "acme-left", ["acme-common==1.0"])
    said = "{params.messages[-1].content}"
    return edited(
        files, "src/acme_left/adapter.py", ("import time\n", IMPORT), (said, "{acme_common.VERSION}")
    )


def right() -> dict[str, str]:
    """A provider with a service that answers with the version of acme-common in its container: 2.0."""
    files = provider.scaffolded_service("acme-right")
    library = provider.library("acme-common", "2.0")["acme_common/__init__.py"]
    said = 'str(json.loads(body)["text"]).upper()'
    changed = edited(files, "service.py", ("import threading\n", IMPORT), (said, "acme_common.VERSION"))
    return {**changed, "app/acme_common/__init__.py": library}


def edited(files: provider.Files, path: str, *changes: tuple[str, str]) -> dict[str, str]:
    """The sources with one of them changed."""
    text = files[path]
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, f"{old}{new}" if new is IMPORT else new)
    return {**files, path: text}


def images(base: Image, work: Path) -> Iterator[Image]:
    """The distribution and the providers, each with the resolver."""
    resolver = layer.write(work / "resolver", RESOLVER)
    common = provider.library("acme-common", "1.0")
    wheels = provider.wheels([left(), common], work / "left")
    made = [
        replace(base, name=RESOLVING),
        provider.image(LEFT, work / "image", left()["lls-provider-spec.yaml"], wheels),
        *provider.served({RIGHT: right()}, work / "right"),
    ]
    return (replace(image, layers=(*image.layers, resolver)) for image in made)


@dataclass(frozen=True, slots=True)
class Chat:
    """A LlamaStackDistribution `chat` that serves. sent: the packets of all pods until then. pod: its only pod."""

    namespace: str
    sent: list[Packet]
    pod: Object


@pytest.fixture(scope="module")
def chat(suite: Suite, node: Node, base: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chat]:
    """It serves before the first test looks."""
    for image in images(base, tmp_path_factory.mktemp("conflicting")):
        node.add(image)
    namespace = f"conflict-{uuid.uuid4().hex[:8]}"
    suite.plane.kubectl("create", "namespace", namespace)
    yield asyncio.run(started(suite, namespace))
    end_pods(suite, namespace)


async def started(suite: Suite, namespace: str) -> Chat:
    admin = credentials.from_kubeconfig(str(suite.plane.kubeconfig))
    providers = [entry("left", LEFT, prefix=""), {**entry("right", RIGHT, prefix=""), "service": {}}]
    sections, distribution = {"inference": providers}, {"image": RESOLVING}
    cr = stack("chat", namespace, distribution=distribution, externalProviders=sections)
    async with Client(admin, user_agent="test") as api:
        with capturing() as capture:
            await api.create(LLSD, cr, manager="user")
            await until_ready(api, "chat", namespace)
            sent = capture.packets()
        return Chat(namespace, sent, await serving_pod(api, "chat", namespace))


@pytest.mark.accept("L2-17")
@pytest.mark.parametrize(("provider_id", "version"), [("left", "1.0"), ("right", "2.0")])
async def test_each_provider_has_its_version(api: Client, chat: Chat, provider_id: str, version: str) -> None:
    answer = await (await server(api, "chat", chat.namespace)).chat(f"{provider_id}/echo-1", "ping")

    assert (answer.status, answer.body) == (200, version)


@pytest.mark.accept("L2-19")
def test_pod_sends_nothing_of_its_own_until_it_serves(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    """Its init containers have no interface at all. All others share that of the pod."""
    sent = [packet for packet in chat.sent if packet.source == chat.pod["status"]["podIP"]]

    with capsys.disabled():
        print(
            f"\npackets of a pod until it serves: {len(sent)}, all of them answers to its probes and the operator"
        )
    assert sent
    assert {(packet.protocol, packet.target) for packet in sent if packet.opens} == set()


@pytest.mark.accept("L2-19")
async def test_question_for_name_and_connection_are_counted(api: Client, node: Node, namespace: str) -> None:
    plain = replace(PLAIN, name="example.com/resolving:1")
    node.add(replace(plain, layers=(layer.write(node.logs.parent / "resolver", RESOLVER),)))
    caller = {**container("main", "true"), "image": plain.name, "command": ["python3", "-c", CALLS]}

    with capturing() as capture:
        made = await run(
            api,
            pod(namespace, caller, restartPolicy="Never"),
            lambda status: status.get("phase") in ("Succeeded", "Failed"),
        )
        sent = [packet for packet in capture.packets() if packet.source == made["status"]["podIP"]]

    opened = {(packet.protocol, packet.target) for packet in sent if packet.opens}
    assert opened >= {("UDP", f"{addresses.NODE}:53"), ("TCP", f"{addresses.NODE}:9")}
