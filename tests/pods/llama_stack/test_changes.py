"""Changes of a LlamaStackDistribution that serves, on a real server: what is called before, during and after."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kubefoundry_llamastack.names import LLSD
from kubefoundry_local.suite import Suite
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
    until_ready,
    until_rolled_out,
)
from pods.rig import end_pods
from support.llamastack import condition_of, deployment, edit, reason, until_status

pytestmark = pytest.mark.integration

SHIELD: Object = {"name": "SHIELD_PROVIDER", "value": "guard"}
REFUSED, GOOD = {"prefixx": "hi "}, {"prefix": "hi "}
"""What preflight refuses, and its correction."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """A LlamaStackDistribution `chat` whose first configuration was refused, and that serves with its second.

    refused, recovered: its status before and after.
    """

    namespace: str
    refused: Object
    recovered: Object


@pytest.fixture(scope="module")
def chat(suite: Suite, examples: None) -> Iterator[Corrected]:
    namespace = f"changes-{uuid.uuid4().hex[:8]}"
    suite.plane.kubectl("create", "namespace", namespace)
    yield asyncio.run(corrected(suite, namespace))
    end_pods(suite, namespace)


async def corrected(suite: Suite, namespace: str) -> Corrected:
    admin = credentials.from_kubeconfig(str(suite.plane.kubeconfig))
    providers = {
        "inference": [entry("echo", ECHO, **REFUSED)],
        "safety": [entry("guard", GUARD, deny=["bad"])],
    }
    async with Client(admin, user_agent="test") as api:
        cr = stack("chat", namespace, env=[SHIELD], externalProviders=providers)
        await api.create(LLSD, cr, manager="user")
        refused = await until_reason(api, namespace, "PreflightFailed")
        await edit(api, "chat", namespace, lambda cr: echo(cr).update(config=GOOD))
        return Corrected(namespace, refused, await until_ready(api, "chat", namespace))


def echo(cr: Object) -> Object:
    """Its entry of the first provider."""
    found: Object = cr["spec"]["server"]["externalProviders"]["inference"][0]
    return found


async def until_reason(api: Client, namespace: str, word: str) -> Object:
    return await until_status(
        api,
        "chat",
        namespace,
        lambda status: reason(status, "ExternalProvidersReady") == word,
        seconds=STARTED,
    )


@pytest.mark.accept("FR-027", "PF-11")
async def test_configuration_refused_by_preflight_is_corrected(api: Client, chat: Corrected) -> None:
    answer = await (await server(api, "chat", chat.namespace)).chat("echo/echo-1", "ping")

    message = condition_of(chat.refused, "ExternalProvidersReady")["message"]
    assert chat.refused["phase"] == "Failed"
    for fact in ("Provider: echo", f"Image: {ECHO}", "Code: ConfigRejected", "config.prefixx", "Resolution:"):
        assert fact in message
    assert reason(chat.recovered, "ExternalProvidersReady") == "ProvidersReady"
    assert answer.body == "hi ping"


@pytest.mark.accept("FR-029", "US3-4")
async def test_new_pods_that_cannot_start_leave_the_old_ones_serving(api: Client, chat: Corrected) -> None:
    await edit(api, "chat", chat.namespace, lambda cr: echo(cr).update(image="example.com/none:1"))
    status = await until_reason(api, chat.namespace, "ProviderFailed")

    answer = await (await server(api, "chat", chat.namespace)).chat("echo/echo-1", "ping")
    assert (status["phase"], status["availableReplicas"]) == ("Ready", 1)
    assert (
        "Failed to pull provider image example.com/none:1"
        in condition_of(status, "ExternalProvidersReady")["message"]
    )
    assert answer.body == "hi ping"


@pytest.mark.accept("SC-004", "US1-2")
async def test_provider_that_is_removed_answers_no_more(api: Client, chat: Corrected) -> None:
    """The last one here: nothing asks for the provider after it."""
    before = await (await server(api, "chat", chat.namespace)).chat("echo/echo-1", "ping")

    generation = (await deployment(api, "chat", chat.namespace))["metadata"]["generation"]

    await edit(
        api, "chat", chat.namespace, lambda cr: cr["spec"]["server"]["externalProviders"].pop("inference")
    )
    await until_rolled_out(api, "chat", chat.namespace, generation=generation + 1)
    status = await until_ready(api, "chat", chat.namespace)

    found = Server.of(await serving_pod(api, "chat", chat.namespace))
    gone, refused = await found.chat("echo/echo-1", "ping"), await found.shield("words", "bad")
    listed = await found.providers()
    assert before.status == 200
    assert gone.status == 404, gone.body
    assert refused.body["user_message"] == "'bad' is not allowed here"
    assert [row["providerId"] for row in status["externalProviderStatus"]] == ["guard"]
    assert set(listed) == {"guard"}
