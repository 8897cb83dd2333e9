"""An upstream object of the same name that somebody else created."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiohttp import web

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU
from support.edits import create_model
from support.foreign import foreign
from support.kinds import UPSTREAM
from support.namespaces import new_namespace
from support.proxy import Fault, behind
from support.waiting import message, phase, reason, until, until_deployment

pytestmark = pytest.mark.integration

EVERY = pytest.mark.parametrize("provider", UPSTREAM)


@EVERY
async def test_foreign_object_is_left_alone_until_it_is_gone(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    settled = await create_foreign(api, namespace, provider)

    made = await create_model(api, namespace, GPU, provider)

    refused = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "NameConflict"
    )
    assert phase(refused) == "Failed"
    assert message(refused, "ResourceCreated") == (
        f"{kind.kind} 'm' exists and was not created for this ModelDeployment, so it is left unchanged: delete it "
        "or choose another name"
    )
    assert {"endpoint", "replicas"}.isdisjoint(refused["status"])
    untouched = await api.get(kind, "m", namespace)
    assert untouched["metadata"]["resourceVersion"] == settled["metadata"]["resourceVersion"]
    await api.delete(kind, "m", namespace, uid=settled["metadata"]["uid"])

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    ours = await api.get(kind, "m", namespace)
    assert [owner["uid"] for owner in ours["metadata"]["ownerReferences"]] == [made["metadata"]["uid"]]


@EVERY
async def test_deleted_model_leaves_a_foreign_object_of_its_name(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    settled = await create_foreign(api, namespace, provider)
    made = await create_model(api, namespace, GPU, provider)
    await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "NameConflict")

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    assert await api.get(kind, "m", namespace) == settled


@EVERY
async def test_foreign_object_is_not_merged_into_during_a_write(
    suite: Suite, api: Client, namespace: str, tmp_path: Path, provider: str
) -> None:
    kind = UPSTREAM[provider]
    body = json.dumps(foreign(provider, "m", namespace))
    made: list[str] = []

    def in_between(request: web.Request) -> Fault | None:
        """The administrator is quicker by a hair: our request is on its way already."""
        if request.method == "PATCH" and request.path.endswith(f"/{namespace}/{kind.plural}/m") and not made:
            made.append(suite.plane.kubectl("create", "-f", "-", input=body).stdout)
        return None

    async with behind(suite, provider, tmp_path) as proxy:
        proxy.rule = in_between
        await create_model(api, namespace, GPU, provider)
        await until_deployment(
            api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "NameConflict"
        )

    theirs = await api.get(kind, "m", namespace)
    assert len(made) == 1
    assert "ownerReferences" not in theirs["metadata"]
    assert f"{provider}-provider" not in {entry["manager"] for entry in theirs["metadata"]["managedFields"]}


async def test_foreign_helper_is_left_alone(suite: Suite, api: Client, namespace: str) -> None:
    name = await name_of_helper(api)
    theirs = await api.create(
        CONFIG_MAPS,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace},
            "data": {"mine": "yes"},
        },
        manager="admin",
    )

    await create_model(api, namespace, GPU, "kaito")

    refused = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "NameConflict"
    )
    assert message(refused, "ResourceCreated").startswith(f"ConfigMap '{name}' exists and was not created")
    assert await api.get(CONFIG_MAPS, name, namespace) == theirs
    await api.delete(CONFIG_MAPS, name, namespace, uid=theirs["metadata"]["uid"])
    # Nothing of a ConfigMap without our labels is watched: the next change looks again, or the next five minutes.
    touch = [{"op": "add", "path": "/metadata/annotations", "value": {"example.com/touched": "yes"}}]
    await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, touch, manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")


async def name_of_helper(api: Client) -> str:
    """What KAITO's ConfigMap of such a deployment is called, which says its content: as seen in another namespace."""
    elsewhere = await new_namespace(api)
    await create_model(api, elsewhere, GPU, "kaito")
    await until_deployment(api, "m", elsewhere, lambda obj: phase(obj) == "Running")
    [helper] = [
        config_map["metadata"]["name"]
        for config_map in (await api.list(CONFIG_MAPS, elsewhere))[0]
        if config_map["metadata"]["name"].startswith("m-inference-config")
    ]
    return str(helper)


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
