"""Two providers of examples/llamastack on a real llama-stack server, through the operator: what a user gets."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import yaml

from kubefoundry_local.suite import Suite
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.cluster.client import Client
from pods.images.provider import ECHO, GUARD
from pods.llama_stack.distributions import (
    STARTED,
    entry,
    server,
    serving_pod,
    stack,
    until_ready,
)
from pods.rig import end_pods

pytestmark = pytest.mark.integration


@dataclass(frozen=True, slots=True)
class Chat:
    """A running LlamaStackDistribution `chat`. prefix: in its CR. secret: in a Secret that the CR names."""

    namespace: str
    prefix: str
    secret: str


@pytest.fixture(scope="module")
def chat(suite: Suite, examples: None) -> Iterator[Chat]:
    """Its pods run before the first test looks."""
    made = Chat(f"chat-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex, uuid.uuid4().hex)
    kubectl = suite.plane.kubectl
    kubectl("create", "namespace", made.namespace)
    # what the pods are is admitted at the strictest level
    kubectl("label", "namespace", made.namespace, "pod-security.kubernetes.io/enforce=restricted")
    kubectl(
        "create", "secret", "generic", "words", f"--from-literal=denied={made.secret}", "-n", made.namespace
    )
    variables: list[Object] = [
        {"name": "DENIED", "valueFrom": {"secretKeyRef": {"name": "words", "key": "denied"}}},
        {"name": "SHIELD_PROVIDER", "value": "guard"},
    ]
    providers = {
        "inference": [entry("echo", ECHO, prefix=f"{made.prefix} ")],
        "safety": [entry("guard", GUARD, deny=["${env.DENIED}"])],
    }
    cr = stack("chat", made.namespace, env=variables, externalProviders=providers)
    kubectl("create", "-f", "-", input=yaml.safe_dump(cr))
    # the operator has reached its server, by the way that the tests go
    reached = ("--for=condition=HealthCheck", f"--timeout={STARTED:.0f}s")
    kubectl("wait", "llsd/chat", "-n", made.namespace, *reached)
    yield made
    end_pods(suite, made.namespace)


@pytest.mark.accept("US1-1", "SC-001", "SC-004", "FR-022")
async def test_the_answer_holds_what_the_cr_configures(api: Client, chat: Chat) -> None:
    answer = await (await server(api, "chat", chat.namespace)).chat("echo/echo-1", "ping")

    assert (answer.status, answer.body) == (200, f"{chat.prefix} ping")


@pytest.mark.accept("US1-2", "SC-004")
async def test_a_safety_call_goes_through_the_second_provider(api: Client, chat: Chat) -> None:
    """What it denies is the value of a Secret, which reaches it through a variable."""
    live = await server(api, "chat", chat.namespace)

    allowed = await live.shield("words", "good morning")
    refused = await live.shield("words", f"tell me {chat.secret}")

    assert (allowed.status, allowed.body) == (200, None)
    assert refused.body["user_message"] == f"'{chat.secret}' is not allowed here"


@pytest.mark.accept("SC-003", "FR-021")
async def test_the_server_lists_the_providers_as_the_cr_has_them(api: Client, chat: Chat) -> None:
    listed = await (await server(api, "chat", chat.namespace)).providers()

    assert {name: (item["api"], item["provider_type"], item["config"]) for name, item in listed.items()} == {
        "echo": ("inference", "remote::acme-echo", {"prefix": f"{chat.prefix} "}),
        "guard": ("safety", "inline::acme-guard", {"deny": [chat.secret]}),
    }


@pytest.mark.accept("FR-028", "FR-011")
async def test_the_status_tells_what_runs(api: Client, chat: Chat) -> None:
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


async def test_a_secret_value_is_written_nowhere(api: Client, suite: Suite, node: Node, chat: Chat) -> None:
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
