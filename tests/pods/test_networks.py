"""How pods reach one another on the node, and what their probes decide."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import aiohttp
import pytest

from kubefoundry_nodes.kubelet.kubelet_client import ENDPOINT_SLICES, SERVICES
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_nodes.kubelet.services import OWNER, ready
from kubefoundry_sdk._api.kinds import PODS, Object
from kubefoundry_sdk._cluster.client import Client
from pods.example_pods import PLAIN, READY, container, pod, run, seen
from support.waiting import SECONDS, until

pytestmark = pytest.mark.integration

SERVER: Final = """
import http.server, os, socket
answers = {"/ready": 503, "/live": 200}
class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(answers.get(self.path, 200))
        self.end_headers()
        self.wfile.write(socket.gethostname().encode())
    def do_PUT(self):
        path, _, code = self.path.partition("=")
        answers[path] = int(code)
        self.send_response(204)
        self.end_headers()
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("0.0.0.0", 8000), Server).serve_forever()
"""
"""Says the name of its pod; a PUT of /PATH=CODE decides what it answers there."""

ALWAYS: Final = {"periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 60}
"""A probe whose first failure counts, but none that comes from a busy machine."""


@pytest.fixture(autouse=True)
def _image(node: Node) -> None:
    node.add(PLAIN)


def server(**fields: Any) -> Object:
    command = ["python3", "-c", SERVER]
    ports = [{"name": "http", "containerPort": 8000}]
    return {"name": "main", "image": PLAIN.name, "command": command, "ports": ports, **fields}


def service(name: str, namespace: str, app: str, **spec: Any) -> Object:
    ports = [{"name": "web", "port": 80, "targetPort": "http"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"app": app}, "ports": ports, **spec},
    }


async def ask(url: str, method: str = "GET") -> str:
    async with aiohttp.ClientSession() as session, session.request(method, url) as response:
        return await response.text()


async def until_answer(url: str) -> str:
    """What is answered there as soon as somebody does; the node follows the API server a moment later."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                return await ask(url)
            except aiohttp.ClientError:
                await asyncio.sleep(0.05)


async def until_refused(url: str) -> None:
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                await ask(url)
            except aiohttp.ClientConnectorError:
                return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.05)


async def test_two_pods_listen_on_the_same_port(api: Client, namespace: str) -> None:
    probe = {"tcpSocket": {"port": "http"}, **ALWAYS, "failureThreshold": 60}
    bodies = [pod(namespace, server(startupProbe=probe)) for _ in range(2)]
    made = [await run(api, body, READY) for body in bodies]

    said = [await ask(f"http://{one['status']['podIP']}:8000/") for one in made]

    assert said == [body["metadata"]["name"] for body in bodies]


async def test_only_ready_pods_answer_for_a_service_and_its_names(
    api: Client, namespace: str, node: Node
) -> None:
    body = pod(namespace, server(readinessProbe={"httpGet": {"path": "/ready", "port": "http"}, **ALWAYS}))
    name = body["metadata"]["name"]
    made = await api.create(SERVICES, service("web", namespace, name), manager="test")
    address = f"http://{made['spec']['clusterIP']}"
    running = await run(api, body, started)
    assert not running["status"]["containerStatuses"][0]["ready"]
    await until_refused(address)

    direct = f"http://{running['status']['podIP']}:8000"
    await until_answer(direct)
    await ask(f"{direct}/ready=200", "PUT")

    await seen(api, running, READY)
    assert await until_answer(address) == name
    slices, _ = await api.list(ENDPOINT_SLICES, namespace, selector={"labelSelector": f"{OWNER}=web"})
    assert [ready(one) for one in slices] == [[running["status"]["podIP"]]]
    names = ["web", f"web.{namespace}", f"web.{namespace}.svc", f"web.{namespace}.svc.cluster.local"]
    asking = f"from urllib.request import urlopen\nfor name in {names}: print(urlopen(f'http://{{name}}/').read().decode())"
    caller = {"name": "main", "image": PLAIN.name, "command": ["python3", "-c", asking]}
    called = await run(
        api,
        pod(namespace, caller, restartPolicy="Never"),
        lambda s: s.get("phase") in ("Succeeded", "Failed"),
    )
    assert node.log(namespace, called["metadata"]["name"], "main").split() == [name] * 4

    await ask(f"{direct}/ready=500", "PUT")

    await until_refused(address)


async def test_service_that_comes_is_known_to_pods_that_run(api: Client, namespace: str, node: Node) -> None:
    url = f"http://late.{namespace}.svc/"
    program = f"from urllib.request import urlopen; print(urlopen('{url}').read())"
    asking = f'until python3 -c "{program}" 2>&-; do :; done'
    waiting = await run(api, pod(namespace, container("main", asking), restartPolicy="Never"), READY)
    body = pod(namespace, server())
    await run(api, body, READY)

    await api.create(SERVICES, service("late", namespace, body["metadata"]["name"]), manager="test")

    await seen(api, waiting, lambda status: status["phase"] == "Succeeded")
    assert body["metadata"]["name"] in node.log(namespace, waiting["metadata"]["name"], "main")


async def test_init_containers_have_no_network(api: Client, namespace: str, node: Node) -> None:
    program = "import socket; socket.create_connection(('10.244.0.1', 1))"
    look = f'ls /sys/class/net; python3 -c "{program}" 2>&1 | tail -1'
    body = pod(
        namespace, container("main", look), initContainers=[container("first", look)], restartPolicy="Never"
    )

    made = await run(api, body, lambda status: status.get("phase") == "Succeeded")

    name = made["metadata"]["name"]
    assert node.log(namespace, name, "first").splitlines() == [
        "lo",
        "OSError: [Errno 101] Network is unreachable",
    ]
    refused = "ConnectionRefusedError: [Errno 111] Connection refused"
    assert node.log(namespace, name, "main").splitlines() == ["eth0", "lo", refused]


@pytest.mark.parametrize("ask_for", [{"exec": {"command": ["cat", "/no"]}}, {"tcpSocket": {"port": 9}}])
async def test_container_that_does_not_start_is_restarted(
    api: Client, namespace: str, ask_for: dict[str, Any]
) -> None:
    body = pod(namespace, container("main", "exec sleep infinity", startupProbe={**ask_for, **ALWAYS}))

    made = await run(api, body, restarted)

    [main] = made["status"]["containerStatuses"]
    ended = main["lastState"].get("terminated") or main["state"]["terminated"]
    # Process 1 does not hear a SIGTERM that it has no handler for.
    assert (ended["exitCode"], ended["reason"]) == (137, "Error")
    assert not main["started"]


async def test_container_that_fails_liveness_is_restarted(api: Client, namespace: str) -> None:
    probe = {
        "exec": {"command": ["test", "!", "-e", "/tmp/ill"]},
        "terminationGracePeriodSeconds": 60,
        **ALWAYS,
    }
    script = "trap 'exit 9' TERM; touch /tmp/ill; while :; do sleep 0.1; done"

    made = await run(api, pod(namespace, container("main", script, livenessProbe=probe)), restarted)

    [main] = made["status"]["containerStatuses"]
    ended = main["lastState"].get("terminated") or main["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (9, "Error")


async def test_liveness_is_asked_only_once_the_container_has_started(api: Client, namespace: str) -> None:
    probe = {"httpGet": {"path": "/live", "port": "http"}, **ALWAYS}
    body = pod(namespace, server(startupProbe={**probe, "failureThreshold": 60}, livenessProbe=probe))
    made = await run(api, body, READY)
    assert made["status"]["containerStatuses"][0]["restartCount"] == 0

    await ask(f"http://{made['status']['podIP']}:8000/live=500", "PUT")

    await seen(api, made, restarted)


def started(status: Object) -> bool:
    """Whether the first container has."""
    [main, *_] = status.get("containerStatuses") or [{}]
    return bool(main.get("started"))


def restarted(status: Object) -> bool:
    """Whether the first container was."""
    [main, *_] = status.get("containerStatuses") or [{}]
    return bool(main.get("restartCount"))


async def test_deleted_pod_answers_no_more(api: Client, namespace: str) -> None:
    body = pod(namespace, server())
    name = body["metadata"]["name"]
    made = await api.create(SERVICES, service("web", namespace, name), manager="test")
    running = await run(api, body, READY)
    address = f"http://{made['spec']['clusterIP']}"
    await until_answer(address)

    await api.delete(PODS, name, namespace, uid=running["metadata"]["uid"])

    await until(api, PODS, name, namespace, lambda one: one is None)
    await until_refused(address)
