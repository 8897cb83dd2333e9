"""Providers with services, on a real llama-stack server: one over a Unix socket, one over TCP that starts late."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from kubefoundry_llamastack.names import LLSD, PODS
from kubefoundry_local.suite import Suite
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from pods.example_pods import READY
from pods.images import provider
from pods.images.provider import SHOUT, WHISPER
from pods.llama_stack.distributions import (
    STARTED,
    Server,
    entry,
    server,
    serving_pod,
    stack,
    until_answers,
    until_ready,
)
from pods.llama_stack.load import Load
from pods.operator_process import OPERATOR
from pods.rig import end_pods
from support.events import until_event
from support.llamastack import condition_of, edit, reason, until_status
from support.waiting import until

pytestmark = pytest.mark.integration

LATE: Final = 20
"""Seconds that a service waits before it starts."""
LATE_COMMAND: Final = ["sh", "-c", f"sleep {LATE}; exec {' '.join(provider.SERVICE)}"]

DEGRADED: Final = "ProviderDegraded"
RETRIED: Final = 4.0
"""Seconds for which the provider certainly tries a request again: it waits for up to 1 s of its 5 s at once."""
ACCOUNT: Final = "/run/secrets/kubernetes.io/serviceaccount"
"""The folder of the token of a ServiceAccount, in an image where /var/run is a link."""
TOKENS: Final = "/run/lls-provider-tokens/shout"


@dataclass(frozen=True, slots=True)
class Chat:
    """A LlamaStackDistribution `chat` that serves. secret: in a variable of its server. pod: its only pod."""

    namespace: str
    secret: str
    pod: Object

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])

    def volume(self, node: Node, name: str) -> Path:
        """A volume of the pod, as a folder."""
        return node.logs.parent / "pods" / str(self.pod["metadata"]["uid"]) / "volumes" / name


@pytest.fixture(scope="module")
def chat(suite: Suite, served_images: None) -> Iterator[Chat]:
    """It serves before the first test looks, in a namespace of the strictest Pod Security level."""
    namespace, secret = f"services-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    suite.plane.kubectl("create", "namespace", namespace)
    suite.plane.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    whisper = {"transport": "TCP", "command": LATE_COMMAND}
    providers = [
        {**entry("shout", SHOUT, prefix="shout: "), "service": {}},
        {**entry("whisper", WHISPER, prefix="whisper: "), "service": whisper},
    ]
    variables: list[Object] = [{"name": "SECRET_WORD", "value": secret}]
    cr = stack("chat", namespace, env=variables, externalProviders={"inference": providers})
    pod = asyncio.run(ready_pod(suite, cr))
    yield Chat(namespace, secret, pod)
    end_pods(suite, namespace)


async def ready_pod(suite: Suite, cr: Object) -> Object:
    """Create the CR, and return its pod as soon as all is well."""
    admin = credentials.from_kubeconfig(str(suite.plane.kubeconfig))
    name, namespace = cr["metadata"]["name"], cr["metadata"]["namespace"]
    async with Client(admin, user_agent="test") as api:
        await api.create(LLSD, cr, manager="user")
        await until_ready(api, name, namespace)
        return await serving_pod(api, name, namespace)


def container(pod: Object, name: str) -> Object:
    """The status of a container."""
    states = [*pod["status"].get("initContainerStatuses", ()), *pod["status"]["containerStatuses"]]
    [found] = [item for item in states if item["name"] == name]
    return dict(found)


def started_at(pod: Object, name: str) -> datetime:
    return datetime.fromisoformat(container(pod, name)["state"]["running"]["startedAt"])


def service_process(provider_id: str) -> int:
    """The first process of a running service, by its variable."""
    wanted = f"LLS_PROVIDER_ID={provider_id}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if wanted in variables and provider.SERVICE[1].encode() in words:
            found.append(int(folder.name))
    [process] = found
    return process


@pytest.mark.accept("L2-07", "L2-08")
@pytest.mark.parametrize("provider_id", ["shout", "whisper"])
async def test_chat_goes_through_provider_and_service(api: Client, chat: Chat, provider_id: str) -> None:
    live = await server(api, "chat", chat.namespace)

    answer = await live.chat(f"{provider_id}/echo-1", "ping")

    assert (answer.status, answer.body) == (200, f"{provider_id}: PING")


@pytest.mark.accept("L2-07")
async def test_server_lists_provider_with_address_of_service(api: Client, node: Node, chat: Chat) -> None:
    listed = await (await server(api, "chat", chat.namespace)).providers()
    merged = (chat.volume(node, "config") / "run.yaml").read_text()

    addresses = {name: item["config"]["url"] for name, item in listed.items()}
    assert addresses == {
        "shout": "http+unix:///run/lls-provider/shout/service.sock",
        "whisper": "http://127.0.0.1:18401",
    }
    assert "url: ${env.KUBEFOUNDRY_PROVIDER_SHOUT_URL}" in merged
    assert "service.sock" not in merged


@pytest.mark.accept("L2-08")
async def test_only_health_port_answers_from_outside_the_pod(chat: Chat) -> None:
    address = chat.pod["status"]["podIP"]

    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(address, 18401)
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{address}:18501/healthz") as response,
    ):
        health = await response.json()

    assert (response.status, health["provider"]) == (200, "whisper")


@pytest.mark.accept("L2-09")
def test_server_starts_after_late_service(node: Node, chat: Chat) -> None:
    server_start = started_at(chat.pod, "llama-stack")

    assert (server_start - started_at(chat.pod, "provider-whisper")).total_seconds() >= LATE
    assert container(chat.pod, "provider-whisper")["restartCount"] == 0
    assert "Waiting for the service of provider 'whisper'" in node.log(
        chat.namespace, chat.name, "llama-stack"
    )


@pytest.mark.accept("L2-20")
def test_sidecar_has_nothing_of_the_server(chat: Chat) -> None:
    process = Path(f"/proc/{service_process('shout')}")
    variables = (process / "environ").read_text().split("\0")
    mounts = {
        words[4]: words[5].split(",")
        for words in map(str.split, (process / "mountinfo").read_text().splitlines())
    }
    root = process / "root"

    assert {path.name for path in (root / "run/lls-provider").iterdir()} == {"no-token", "service.sock"}
    assert {path for path in mounts if not path.startswith(("/proc", "/sys", "/dev"))} == {
        "/",
        "/run/hosts",
        "/run/lls-provider",
        TOKENS,
        ACCOUNT,
    }
    assert "ro" in mounts[TOKENS]
    assert {path.name for path in (root / TOKENS[1:]).iterdir()} == {"token"}
    assert not list((root / ACCOUNT[1:]).iterdir())
    assert not (root / "opt/llama-stack").exists()
    assert not [line for line in variables if line.startswith("SECRET_WORD=") or chat.secret in line]


@pytest.mark.accept("L2-21")
@pytest.mark.parametrize("token", ["", "Bearer 0000", "Bearer "])
async def test_service_refuses_request_without_its_token(chat: Chat, token: str) -> None:
    path = f"/proc/{service_process('shout')}/root/run/lls-provider/service.sock"
    headers = {"Authorization": token} if token else {}

    async with (
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(path)) as session,
        session.post("http://service/say", json={"text": "x"}, headers=headers) as response,
    ):
        assert response.status == 401


@pytest.mark.accept("L2-21")
async def test_token_of_service_is_written_nowhere(api: Client, suite: Suite, node: Node, chat: Chat) -> None:
    tokens = [(chat.volume(node, f"tok-{name}") / "token").read_text() for name in ("shout", "whisper")]
    await until_ready(api, "chat", chat.namespace)
    kinds = "llsd,deployments,replicasets,pods,services,configmaps,secrets,events"

    objects = suite.plane.kubectl("get", kinds, "-n", chat.namespace, "-o", "json").stdout
    logs = "".join(path.read_text(errors="replace") for path in node.logs.glob(f"{chat.namespace}_*/*/*.log"))
    operator = suite.components[OPERATOR].log.read_text()

    assert len(set(tokens)) == 2
    assert "KUBEFOUNDRY_PROVIDER_SHOUT_URL" in objects
    assert "Preflight passed" in logs
    for token in tokens:
        assert len(token) == 64
        assert token not in objects + logs + operator


@pytest.mark.accept("L2-10", "L2-16")
async def test_killed_service_restarts_alone_under_load(
    api: Client, node: Node, chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    path = chat.volume(node, "svc-shout") / "service.sock"
    before = path.stat().st_ino
    direct = Load(Server.of(chat.pod))
    through_service = Load(await server(api, "chat", chat.namespace))

    async with asyncio.TaskGroup() as group:
        clients = [group.create_task(load.run()) for load in (direct, through_service)]
        await direct.busy.wait()
        killed = time.monotonic()
        os.kill(service_process("shout"), signal.SIGKILL)
        pod = await until(api, PODS, chat.name, chat.namespace, has_restarted, seconds=STARTED)
        ready = time.monotonic()
        await until_answers(through_service.server, "/v1/health")
        restored = time.monotonic()
        after = await direct.server.chat("shout/echo-1", "ping")
        for client in clients:
            client.cancel()

    late = max((began - killed for began in through_service.failed), default=0.0)
    with capsys.disabled():
        print(
            f"\nservice killed under load, ready again after {ready - killed:.1f} s; to the pod: {direct.sent} "
            f"requests sent, {len(direct.failed)} failed; to its Service: {through_service.sent} sent, "
            f"{len(through_service.failed)} failed, the last one sent after {late:.1f} s"
        )
    assert pod is not None
    assert container(pod, "llama-stack")["restartCount"] == 0
    assert container(pod, "provider-whisper")["restartCount"] == 0
    assert container(pod, "provider-shout")["lastState"]["terminated"]["exitCode"] == 128 + signal.SIGKILL
    assert path.stat().st_ino != before
    assert after.status == 200
    status = await until_status(
        api, "chat", chat.namespace, lambda seen: condition_of(seen, DEGRADED), seconds=STARTED
    )
    assert condition_of(status, DEGRADED)["reason"] == "ServiceCrashLoop"
    assert f"Pod: {chat.name}\nContainer: provider-shout\n" in condition_of(status, DEGRADED)["message"]
    # The provider tries again, but a busy machine may restart the service too late for the first requests. The
    # Service refuses connections until its only pod is ready.
    assert [began for began in direct.failed if began + RETRIED > ready] == []
    assert [began for began in through_service.failed if began > restored] == []


def has_restarted(pod: Object | None) -> bool:
    assert pod is not None
    state = container(pod, "provider-shout")
    return bool(state["restartCount"] == 1 and READY(pod["status"]))


@pytest.fixture(scope="module")
def ordinary(suite: Suite, served_images: None, chat: Chat) -> Iterator[str]:
    """A namespace, while the operator runs services in ordinary containers, as before Kubernetes 1.32."""
    operator = suite.components[OPERATOR]
    operator.stop()
    operator.environment["KUBEFOUNDRY_NATIVE_SIDECARS"] = "false"
    operator.start()
    operator.wait_ready()
    namespace = f"services-{uuid.uuid4().hex[:8]}"
    suite.plane.kubectl("create", "namespace", namespace)
    yield namespace
    end_pods(suite, namespace)
    operator.stop()
    del operator.environment["KUBEFOUNDRY_NATIVE_SIDECARS"]
    operator.start()
    operator.wait_ready()


@pytest.mark.accept("L2-09")
async def test_preflight_waits_for_late_service_in_ordinary_container(
    api: Client, suite: Suite, node: Node, ordinary: str
) -> None:
    served = {**entry("late", SHOUT, prefix=""), "service": {"command": LATE_COMMAND}}
    await api.create(LLSD, stack("late", ordinary, externalProviders={"inference": [served]}), manager="user")

    await until_ready(api, "late", ordinary)

    pod = await serving_pod(api, "late", ordinary)
    ready = condition_of(pod["status"], "Ready")
    since = datetime.fromisoformat(ready["lastTransitionTime"]) - started_at(pod, "provider-late")
    log = node.log(ordinary, pod["metadata"]["name"], "llama-stack")
    assert [item["name"] for item in pod["status"]["containerStatuses"]] == ["llama-stack", "provider-late"]
    assert [item["restartCount"] for item in pod["status"]["containerStatuses"]] == [0, 0]
    assert since.total_seconds() >= LATE
    assert "Waiting for the service of provider 'late'" in log
    answer = await (await server(api, "late", ordinary)).chat("late/echo-1", "ping")
    assert (answer.status, answer.body) == (200, "PING")


@pytest.mark.accept("L2-10")
async def test_outage_of_service_is_reported_once_each_way(api: Client, suite: Suite, chat: Chat) -> None:
    """The service was killed by a test above, and has been ready since then."""
    status = await until_status(
        api, "chat", chat.namespace, lambda seen: not condition_of(seen, DEGRADED), seconds=STARTED
    )
    # The operator sends an Event after the status that it is about.
    await until_event(api, chat.namespace, "ProviderRecovered")

    events = json.loads(suite.plane.kubectl("get", "events", "-n", chat.namespace, "-o", "json").stdout)
    times = {
        kind: sum(item.get("count") or 1 for item in events["items"] if item["reason"] == kind)
        for kind in ("ServiceCrashLoop", "ProviderRecovered")
    }
    assert status["phase"] == "Ready"
    assert times == {"ServiceCrashLoop": 1, "ProviderRecovered": 1}


@pytest.mark.accept("L2-15")
async def test_hanging_service_restarts_alone(api: Client, chat: Chat) -> None:
    """It is stopped, not killed: only its health check shows that."""
    os.kill(service_process("whisper"), signal.SIGSTOP)

    pod = await until(
        api,
        PODS,
        chat.name,
        chat.namespace,
        lambda seen: (
            seen is not None
            and container(seen, "provider-whisper")["restartCount"] >= 1
            and READY(seen["status"])
        ),
        seconds=2 * STARTED,
    )

    assert pod is not None
    assert container(pod, "llama-stack")["restartCount"] == 0
    chatting = await server(api, "chat", chat.namespace)
    # The Service leads to the pod again a moment after the pod is ready.
    await until_answers(chatting, "/v1/health")
    answer = await chatting.chat("whisper/echo-1", "ping")
    assert (answer.status, answer.body) == (200, "whisper: PING")


@pytest.mark.accept("L2-13")
async def test_old_pod_serves_while_new_service_has_no_image(api: Client, chat: Chat) -> None:
    def set_image(obj: Object) -> None:
        shout = obj["spec"]["server"]["externalProviders"]["inference"][0]
        shout["service"]["image"] = "example.com/nowhere:1"

    await edit(api, "chat", chat.namespace, set_image)

    status = await until_status(
        api,
        "chat",
        chat.namespace,
        lambda seen: reason(seen, DEGRADED) == "ServiceImagePullFailed",
        seconds=STARTED,
    )
    answer = await (await server(api, "chat", chat.namespace)).chat("shout/echo-1", "ping")
    pod = await api.get(PODS, chat.name, chat.namespace)
    assert "example.com/nowhere:1" in condition_of(status, DEGRADED)["message"]
    assert (answer.status, answer.body) == (200, "shout: PING")
    assert READY(pod["status"])
    assert "deletionTimestamp" not in pod["metadata"]
