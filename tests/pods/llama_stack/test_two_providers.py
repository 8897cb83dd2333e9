"""Two providers of examples/llamastack on a real llama-stack server, through the operator: what a user gets, and how
long the steps of its start take."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest

from kubefoundry_llamastack.names import LLSD, PODS
from kubefoundry_local.suite import Suite
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from pods.images.provider import ECHO, GUARD
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
from pods.rig import end_pods
from support.llamastack import new_pod
from support.waiting import until

pytestmark = pytest.mark.integration


STEPS = ("external-provider-echo", "external-provider-guard", "extract-distribution-config", "merge-config")


def reached(pod: Object) -> Iterator[str]:
    """Init containers that have ended well, and the server's container once it runs."""
    status = pod.get("status") or {}
    for item in status.get("initContainerStatuses") or ():
        if (item["state"].get("terminated") or {}).get("exitCode") == 0:
            yield item["name"]
    for item in status.get("containerStatuses") or ():
        if "running" in item["state"]:
            yield item["name"]


@dataclass(frozen=True, slots=True)
class Chat:
    """A running LlamaStackDistribution `chat`. prefix: in its CR. secret: in a Secret that the CR names.

    pod: as soon as its server's container ran. times: in seconds, when the CR was `created`, when there was a `pod`,
    when each container had been reached, and when the server was `healthy`.
    """

    namespace: str
    prefix: str
    secret: str
    pod: Object
    times: dict[str, float]


@pytest.fixture(scope="module")
def chat(suite: Suite, examples: None) -> Iterator[Chat]:
    """Its pods run before the first test looks."""
    namespace, prefix, secret = f"chat-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex, uuid.uuid4().hex
    kubectl = suite.plane.kubectl
    kubectl("create", "namespace", namespace)
    # what the pods are is admitted at the strictest level
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    kubectl("create", "secret", "generic", "words", f"--from-literal=denied={secret}", "-n", namespace)
    variables: list[Object] = [
        {"name": "DENIED", "valueFrom": {"secretKeyRef": {"name": "words", "key": "denied"}}},
        {"name": "SHIELD_PROVIDER", "value": "guard"},
    ]
    providers = {
        "safety": [entry("guard", GUARD, deny=["${env.DENIED}"])],
        "inference": [entry("echo", ECHO, prefix=f"{prefix} ")],
    }
    cr = stack("chat", namespace, env=variables, externalProviders=providers)
    pod, times = asyncio.run(started(suite, cr))
    # the operator has reached its server, by the way that the tests go
    reached = ("--for=condition=HealthCheck", f"--timeout={STARTED:.0f}s")
    kubectl("wait", "llsd/chat", "-n", namespace, *reached)
    yield Chat(namespace, prefix, secret, pod, times)
    end_pods(suite, namespace)


async def started(suite: Suite, cr: Object) -> tuple[Object, dict[str, float]]:
    """Creates it: its pod once the server is healthy, and when that got where."""
    namespace, seen = cr["metadata"]["namespace"], {"created": time.monotonic()}

    def note(pod: Object | None) -> bool:
        for name in reached(pod or {}):
            seen.setdefault(name, time.monotonic())
        return "llama-stack" in seen

    admin = credentials.from_kubeconfig(str(suite.plane.kubeconfig))
    async with Client(admin, user_agent="test") as api:
        await api.create(LLSD, cr, manager="user")
        found = await new_pod(api, "chat", namespace, ECHO)
        seen["pod"] = time.monotonic()
        pod = await until(api, PODS, found["metadata"]["name"], namespace, note, seconds=STARTED)
        assert pod is not None
        await until_answers(Server.of(pod), "/v1/health")
    return pod, {**seen, "healthy": time.monotonic()}


@pytest.mark.accept("FR-012", "US1-2")
def test_init_containers_run_in_order_before_the_server(
    node: Node, chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    pod, times = chat.pod, chat.times
    log = node.log(chat.namespace, pod["metadata"]["name"], "llama-stack")
    reported = re.search(r"Preflight passed; external providers: 2; ([\d.]+) s, ([\d.]+) s of it", log)
    ends = [(item["state"]["terminated"]) for item in pod["status"]["initContainerStatuses"]]
    assert reported, log
    assert [item["name"] for item in pod["status"]["initContainerStatuses"]] == list(STEPS)
    assert all(one["finishedAt"] <= other["startedAt"] for one, other in pairwise(ends))
    with capsys.disabled():
        steps = [times[step] for step in ("pod", *STEPS)]
        for step, (before, after) in zip(STEPS, pairwise(steps), strict=True):
            print(f"\n{step}: {after - before:.1f} s", end="")
        print(
            f"\npreflight: {reported[1]} s, of it imports {reported[2]} s"
            f"\nserver healthy: {times['healthy'] - times['llama-stack']:.1f} s after its container runs, preflight "
            "included\nfrom the LlamaStackDistribution's creation to healthy: "
            f"{times['healthy'] - times['created']:.1f} s"
        )


@pytest.mark.accept("US1-1", "SC-001", "SC-004", "FR-022")
async def test_answer_holds_what_the_cr_configures(api: Client, chat: Chat) -> None:
    answer = await (await server(api, "chat", chat.namespace)).chat("echo/echo-1", "ping")

    assert (answer.status, answer.body) == (200, f"{chat.prefix} ping")


@pytest.mark.accept("US1-2", "SC-004")
async def test_safety_call_goes_through_the_second_provider(api: Client, chat: Chat) -> None:
    """What it denies is the value of a Secret, which reaches it through a variable."""
    live = await server(api, "chat", chat.namespace)

    allowed = await live.shield("words", "good morning")
    refused = await live.shield("words", f"tell me {chat.secret}")

    assert (allowed.status, allowed.body) == (200, None)
    assert refused.body["user_message"] == f"'{chat.secret}' is not allowed here"


@pytest.mark.accept("SC-003", "FR-021")
async def test_server_lists_the_providers_as_the_cr_has_them(api: Client, chat: Chat) -> None:
    listed = await (await server(api, "chat", chat.namespace)).providers()

    assert {name: (item["api"], item["provider_type"], item["config"]) for name, item in listed.items()} == {
        "echo": ("inference", "remote::acme-echo", {"prefix": f"{chat.prefix} "}),
        "guard": ("safety", "inline::acme-guard", {"deny": [chat.secret]}),
    }


@pytest.mark.accept("FR-028", "FR-011")
async def test_status_tells_what_runs(api: Client, chat: Chat) -> None:
    status = await until_ready(api, "chat", chat.namespace)

    rows = [
        (row["providerId"], row["image"], row["phase"], row["package"], row["version"])
        for row in status["externalProviderStatus"]
    ]
    conditions = {item["type"]: item["status"] for item in status["conditions"]}
    assert rows == [
        ("echo", ECHO, "Ready", "acme-echo", "0.1.0"),
        ("guard", GUARD, "Ready", "acme-guard", "0.1.0"),
    ]
    assert set(conditions.values()) == {"True"}, status["conditions"]
    assert status["version"]["llamaStackServerVersion"] == "0.7.3"
    [echo] = [one for one in status["distributionConfig"]["providers"] if one["provider_id"] == "echo"]
    assert echo["config"] == {"prefix": f"{chat.prefix} "}


async def test_secret_value_is_written_nowhere(api: Client, suite: Suite, node: Node, chat: Chat) -> None:
    status = await until_ready(api, "chat", chat.namespace)
    kinds = "llsd,deployments,replicasets,pods,services,configmaps,events,endpointslices"

    objects = suite.plane.kubectl("get", kinds, "-n", chat.namespace, "-o", "json").stdout
    pod = await serving_pod(api, "chat", chat.namespace)
    name, spec = pod["metadata"]["name"], pod["spec"]
    logs = [
        node.log(chat.namespace, name, container["name"])
        for container in (*spec["initContainers"], *spec["containers"])
    ]

    [guard] = [one for one in status["distributionConfig"]["providers"] if one["provider_id"] == "guard"]
    assert guard["config"] == {"deny": ["${env.DENIED}"]}
    assert chat.prefix in objects
    assert chat.secret not in objects
    # what follows is the server's own log
    tool, passed, _ = "".join(logs).partition("Preflight passed")
    assert passed
    assert "Installed acme-guard" in tool
    assert chat.secret not in tool
