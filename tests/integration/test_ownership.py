"""An upstream object of the same name that somebody else made."""

from __future__ import annotations

import pytest

from kubefoundry_demo.suite import Suite
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk.cluster.client import Client
from support.deployments import GPU, model_deployment
from support.foreign import foreign
from support.kinds import UPSTREAM
from support.waiting import message, phase, reason, until, until_deployment

pytestmark = pytest.mark.integration

EVERY = pytest.mark.parametrize("provider", UPSTREAM)


@EVERY
async def test_a_foreign_object_of_that_name_is_left_alone_until_it_is_gone(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    settled = await create_foreign(api, namespace, provider)

    made = await create(api, namespace, provider)

    refused = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "NameConflict"
    )
    assert phase(refused) == "Failed"
    assert message(refused, "ResourceCreated") == (
        f"{kind.kind} 'm' exists and was not made for this ModelDeployment; it is left alone: "
        "delete it or choose another name"
    )
    assert {"endpoint", "replicas"}.isdisjoint(refused["status"])
    untouched = await api.get(kind, "m", namespace)
    assert untouched["metadata"]["resourceVersion"] == settled["metadata"]["resourceVersion"]
    await api.delete(kind, "m", namespace, uid=settled["metadata"]["uid"])

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    ours = await api.get(kind, "m", namespace)
    assert [owner["uid"] for owner in ours["metadata"]["ownerReferences"]] == [made["metadata"]["uid"]]


@EVERY
async def test_a_deployment_whose_name_is_taken_leaves_that_object_when_it_goes(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    settled = await create_foreign(api, namespace, provider)
    made = await create(api, namespace, provider)
    await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "NameConflict")

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    assert await api.get(kind, "m", namespace) == settled


async def create(api: Client, namespace: str, provider: str) -> Object:
    return await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU, provider=provider), manager="test"
    )


async def create_foreign(api: Client, namespace: str, provider: str) -> Object:
    """An administrator's object, once the simulated operator has done all that it does to a new one."""
    await api.create(UPSTREAM[provider], foreign(provider, "m", namespace), manager="admin")
    settled = await until(api, UPSTREAM[provider], "m", namespace, serves)
    assert settled is not None
    return settled


def serves(obj: Object | None) -> bool:
    conditions = ((obj or {}).get("status") or {}).get("conditions") or []
    return any(
        item["type"] in ("Ready", "WorkspaceSucceeded") and item["status"] == "True" for item in conditions
    )
