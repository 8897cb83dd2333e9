"""An edit recreates the upstream object in a namespace whose quota has no room for two."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.deployments import GPU, model_deployment
from support.foreign import foreign
from support.kinds import QUOTAS, UPSTREAM
from support.waiting import SECONDS, message, phase, reason, serves, until_deployment

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("provider", "path", "value"),
    [("kaito", "/spec/model/id", "org/another"), ("dynamo", "/spec/engine/type", "sglang")],
)
async def test_command_in_the_refusal_makes_room(
    suite: Suite, api: Client, namespace: str, provider: str, path: str, value: str
) -> None:
    body = model_deployment("m", namespace, GPU, provider=provider)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    await count(api, namespace, provider, used=1)
    await until_full(api, provider, namespace)
    old = await api.get(UPSTREAM[provider], "m", namespace)

    change = {"op": "replace", "path": path, "value": value}
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, [change], manager="test")

    refused = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
    )
    said, command = message(refused, "ResourceCreated").split(": kubectl ")
    assert phase(refused) == "Running"
    assert "the quota needs room for one more" in said
    suite.plane.kubectl(*command.split())
    await count(api, namespace, provider, used=0)
    await until_deployment(api, "m", namespace, serves)
    new = await api.get(UPSTREAM[provider], "m", namespace)
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert value in json.dumps({**new, "metadata": {}})


async def test_quota_message_has_no_command_that_makes_no_room(
    suite: Suite, api: Client, namespace: str
) -> None:
    body = model_deployment("m", namespace, GPU, provider="kaito")
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    await count(api, namespace, "kaito", used=2)
    await until_full(api, "kaito", namespace)

    change = {"op": "replace", "path": "/spec/model/id", "value": "org/another"}
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, [change], manager="test")

    refused = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
    )
    assert message(refused, "ResourceCreated").endswith("the quota needs room for one more")


async def count(api: Client, namespace: str, provider: str, *, used: int) -> None:
    """A quota for one, with its status in the place of the controller that does not run here."""
    hard = {f"count/{UPSTREAM[provider].crd}": "1"}
    head: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "one", "namespace": namespace},
    }
    await api.apply(QUOTAS, {**head, "spec": {"hard": hard}}, manager="admin")
    status = {"hard": hard, "used": dict.fromkeys(hard, str(used))}
    await api.apply_status(QUOTAS, {**head, "status": status}, manager="admin")


async def until_full(api: Client, provider: str, namespace: str) -> None:
    """Asks the API server, which learns of quotas in its own time, until it refuses an example."""
    example = foreign(provider, "example", namespace)
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                await api.create(UPSTREAM[provider], example, manager="test", dry_run=True)
            except ApiError as error:
                assert "exceeded quota" in error.message
                return
            await asyncio.sleep(PROBE)
