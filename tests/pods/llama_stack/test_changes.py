"""Changes of a LlamaStackDistribution that serves, on a real server: what is called before, during and after."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_llamastack.names import LLSD
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.cluster.client import Client
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
from support.llamastack import edit, reason, told, until_status

pytestmark = pytest.mark.integration

SHIELD: Object = {"name": "SHIELD_PROVIDER", "value": "guard"}


def both(namespace: str, **echo: Any) -> Object:
    providers = {
        "inference": [entry("echo", ECHO, **echo)],
        "safety": [entry("guard", GUARD, deny=["bad"])],
    }
    return stack("chat", namespace, env=[SHIELD], externalProviders=providers)


@pytest.mark.accept("SC-004", "US1-2")
async def test_a_provider_that_is_removed_answers_no_more(
    api: Client, examples: None, namespace: str
) -> None:
    await api.create(LLSD, both(namespace), manager="user")
    await until_ready(api, "chat", namespace)
    before = await (await server(api, "chat", namespace)).chat("echo/echo-1", "ping")

    await edit(api, "chat", namespace, lambda cr: cr["spec"]["server"]["externalProviders"].pop("inference"))
    await until_rolled_out(api, "chat", namespace, generation=2)
    status = await until_ready(api, "chat", namespace)

    live = Server.of(await serving_pod(api, "chat", namespace))
    gone, refused = await live.chat("echo/echo-1", "ping"), await live.shield("words", "bad")
    listed = await live.providers()
    assert before.status == 200
    assert gone.status == 404, gone.body
    assert refused.body["user_message"] == "'bad' is not allowed here"
    assert [row["providerId"] for row in status["externalProviderStatus"]] == ["guard"]
    assert set(listed) == {"guard"}


@pytest.mark.accept("FR-029", "US3-4")
async def test_new_pods_that_cannot_start_leave_the_old_ones_serving(
    api: Client, examples: None, namespace: str
) -> None:
    await api.create(LLSD, both(namespace), manager="user")
    await until_ready(api, "chat", namespace)

    await edit(
        api,
        "chat",
        namespace,
        lambda cr: cr["spec"]["server"]["externalProviders"]["inference"][0].update(
            image="example.com/none:1"
        ),
    )
    status = await until_status(
        api,
        "chat",
        namespace,
        lambda status: reason(status, "ExternalProvidersReady") == "ProviderFailed",
        seconds=STARTED,
    )

    answer = await (await server(api, "chat", namespace)).chat("echo/echo-1", "ping")
    assert (status["phase"], status["availableReplicas"]) == ("Ready", 1)
    assert (
        "Failed to pull provider image example.com/none:1"
        in told(status, "ExternalProvidersReady")["message"]
    )
    assert answer.body == "echo: ping"


@pytest.mark.accept("FR-027", "PF-11")
async def test_a_configuration_that_preflight_refuses_and_its_correction(
    api: Client, examples: None, namespace: str
) -> None:
    await api.create(LLSD, both(namespace, prefixx="hi "), manager="user")
    refused = await until_status(
        api,
        "chat",
        namespace,
        lambda status: reason(status, "ExternalProvidersReady") == "PreflightFailed",
        seconds=STARTED,
    )

    def correct(cr: Object) -> None:
        cr["spec"]["server"]["externalProviders"]["inference"][0]["config"] = {"prefix": "hi "}

    await edit(api, "chat", namespace, correct)
    recovered = await until_ready(api, "chat", namespace)

    answer = await (await server(api, "chat", namespace)).chat("echo/echo-1", "ping")
    message = told(refused, "ExternalProvidersReady")["message"]
    assert refused["phase"] == "Failed"
    for fact in ("Provider: echo", f"Image: {ECHO}", "Code: ConfigRejected", "config.prefixx", "Resolution:"):
        assert fact in message
    assert reason(recovered, "ExternalProvidersReady") == "ProvidersReady"
    assert answer.body == "hi ping"
