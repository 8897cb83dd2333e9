"""A webhook denies requests of a clean-up: reported in its words, and repeated until it is gone."""

from __future__ import annotations

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import GPU, model_deployment
from support.events import until_event
from support.foreign import foreign
from support.kinds import UPSTREAM
from support.refusing_webhook import refusing
from support.waiting import message, reason, serves, until, until_deployment
from support.wishes import change_spec

pytestmark = pytest.mark.integration

WORDS = 'teams.example.com "a" not found'
WRITES = 8
"""Of the old provider at most, with the refused ones: it begins to wait 0.2 s, and twice as long each time."""
LONG = 300.0
"""Seconds: a retry is due within a minute after the webhook has gone."""


@pytest.mark.parametrize("code", [403, 404, 409, 500])
async def test_denied_deletion_is_reported_and_sent_again(
    suite: Suite, api: Client, namespace: str, code: int
) -> None:
    kind = UPSTREAM["dynamo"]
    example = foreign("dynamo", "example", namespace)
    body = model_deployment("m", namespace, GPU, provider="dynamo")
    made = await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, serves)

    async with refusing(
        api, kind, namespace, marker='"m"', code=code, words=WORDS, example=example, operations=["DELETE"]
    ):
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

        told = await until_deployment(
            api, "m", namespace, lambda obj: WORDS in message(obj, "ResourceCreated")
        )
        assert told["status"]["message"].startswith("The upstream objects could not be deleted: ")

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None, seconds=LONG)
    assert await until(api, kind, "m", namespace, lambda obj: obj is None) is None


@pytest.mark.parametrize("code", [404, 409, 500])
async def test_denied_removal_of_the_finalizer_is_reported(
    suite: Suite, api: Client, namespace: str, code: int
) -> None:
    example = model_deployment("example", namespace, GPU)
    body = model_deployment("m", namespace, GPU, provider="dynamo")
    made = await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, serves)

    async with refusing(
        api,
        MODEL_DEPLOYMENTS,
        namespace,
        marker='"deletionTimestamp"',
        code=code,
        words=WORDS,
        example=example,
        # Those tell of it.
        statuses=False,
    ):
        await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

        told = await until_deployment(
            api, "m", namespace, lambda obj: WORDS in message(obj, "ResourceCreated")
        )
        assert told["status"]["message"].startswith(
            "Finalizer kubefoundry.ai/dynamo-provider could not be removed: "
        )

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None, seconds=LONG)


@pytest.mark.parametrize("code", [403, 404, 409])
async def test_denied_hand_over_is_reported(suite: Suite, api: Client, namespace: str, code: int) -> None:
    example = foreign("dynamo", "example", namespace)
    body = model_deployment("m", namespace, GPU, provider="dynamo")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, serves)

    async with refusing(
        api,
        UPSTREAM["dynamo"],
        namespace,
        marker='"m"',
        code=code,
        words=WORDS,
        example=example,
        operations=["DELETE"],
    ):
        await change_spec(api, namespace, "/spec/provider/name", "kuberay")

        told = await until_deployment(
            api, "m", namespace, lambda obj: WORDS in obj["status"].get("message", "")
        )
        # It serves, and the message says nothing else.
        assert told["status"]["phase"] == "Running"
        assert "could not be removed for provider kuberay: " in told["status"]["message"]

    await until_deployment(api, "m", namespace, serves, seconds=LONG)


@pytest.mark.parametrize("code", [403, 404, 409, 422, 500])
async def test_denied_finalizer_removal_at_a_hand_over_is_named(
    suite: Suite, api: Client, namespace: str, code: int
) -> None:
    """The new provider waits. Its message names the finalizer, and the Event of the old one has the words, too."""
    example = model_deployment("example", namespace, GPU)
    body = model_deployment("m", namespace, GPU, provider="dynamo")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, serves)
    log = AuditLog(suite)

    async with refusing(
        api,
        MODEL_DEPLOYMENTS,
        namespace,
        marker='"name": "kuberay"',
        code=code,
        words=WORDS,
        example=example,
        statuses=False,
        user="provider-dynamo",
    ):
        await change_spec(api, namespace, "/spec/provider/name", "kuberay")

        note = await until_event(api, namespace, "WriteRejected", lambda note: WORDS in note)
        waiting = await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "WaitingForCleanup"
        )
        written = log.writes("provider-dynamo", namespace, MODEL_DEPLOYMENTS.plural)

    assert note.startswith(
        "Finalizer kubefoundry.ai/dynamo-provider could not be removed for provider kuberay: "
    )
    assert message(waiting, "ResourceCreated").endswith(", and finalizer kubefoundry.ai/dynamo-provider")
    assert len(written) <= WRITES, written
    await until_deployment(api, "m", namespace, serves, seconds=LONG)
