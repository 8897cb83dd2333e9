"""Objects of an earlier ModelDeployment of the same name that the garbage collector does not delete."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS, Kind
from kubefoundry_sdk._cluster.requests import path
from kubefoundry_sdk._provider.contract import Deployment, Provider, Rendered
from kubefoundry_sdk._provider.reconcile.collection import PATIENCE
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk.testing import Harness, simulated
from kubefoundry_sdk.testing._harness import NAMESPACE
from kubefoundry_sdk.testing._server.requests import MERGE_PATCH
from support.things import PROVIDER, SPEC, crd, render

THINGS = Kind("example.com", "v1", "things", "Thing")


def render_with_config_map(deployment: Deployment, schema: Schema) -> Rendered:
    helper = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": deployment.name},
        "data": {"a": "b"},
    }
    return Rendered(render(deployment, schema).main, (helper,))


WITH_CONFIG_MAP = replace(PROVIDER, render=render_with_config_map, helper_kinds=("ConfigMap",))


async def replace_model(harness: Harness) -> str:
    """Remove the finalizers of the model, delete it, and create another one of the same name. Return its uid."""
    url = path(MODEL_DEPLOYMENTS, NAMESPACE, harness.name)
    harness._send("PATCH", url, {"metadata": {"finalizers": None}}, MERGE_PATCH)
    harness._send("DELETE", url)
    await harness.create(SPEC)
    return str(harness.model["metadata"]["uid"])


def owners(obj: dict[str, Any]) -> list[str]:
    return [owner["uid"] for owner in (obj.get("metadata") or {}).get("ownerReferences") or ()]


def deletions(harness: Harness) -> list[str]:
    return [write.path for write in harness.writes if write.method == "DELETE"]


@simulated
async def test_left_over_object_is_named_and_left_to_the_collector() -> None:
    async with Harness(PROVIDER, crd()) as harness:
        await harness.create(SPEC)
        harness._server.collects = False
        first = str(harness.model["metadata"]["uid"])

        await replace_model(harness)

        created = harness.condition("ResourceCreated")
        assert (created["status"], created["reason"]) == ("False", "WaitingForCleanup")
        assert "belongs to an earlier ModelDeployment" in created["message"]
        assert created["message"].endswith("this provider deletes it if that takes longer than 30 seconds")
        assert owners(harness.upstream_object) == [first]
        assert deletions(harness) == []


@simulated
@pytest.mark.parametrize("provider", [PROVIDER, WITH_CONFIG_MAP], ids=["main object", "with a helper"])
async def test_left_over_objects_are_deleted_and_created_again(provider: Provider) -> None:
    async with Harness(provider, crd()) as harness:
        await harness.create(SPEC)
        harness._server.collects = False
        second = await replace_model(harness)

        await harness.advance(PATIENCE + 1)

        kinds = [THINGS, CONFIG_MAPS][: 1 + len(provider.helper_kinds)]
        assert [owners(harness.get(kind, harness.name)) for kind in kinds] == [[second]] * len(kinds)
        assert len(deletions(harness)) == len(kinds)
        assert harness.condition("ResourceCreated")["status"] == "True"


@simulated
async def test_object_with_another_owner_is_not_deleted() -> None:
    async with Harness(PROVIDER, crd()) as harness:
        await harness.create(SPEC)
        harness._server.collects = False
        thing = harness.upstream_object
        other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "another", "uid": "1"}
        thing["metadata"]["ownerReferences"].append(other)
        harness.put(thing, manager="user")
        await harness.advance(5)

        await replace_model(harness)
        await harness.advance(3 * PATIENCE)

        assert harness.condition("ResourceCreated")["reason"] == "NameConflict"
        assert deletions(harness) == []


@simulated
async def test_dry_run_deletes_no_left_over_object() -> None:
    async with Harness(PROVIDER, crd()) as harness:
        await harness.create(SPEC)
        harness._server.collects = False
        await replace_model(harness)
        await harness.annotate({names.DRY_RUN_ANNOTATION: "true"})

        await harness.advance(3 * PATIENCE)

        assert deletions(harness) == []
        assert harness.condition("ResourceCreated")["message"].endswith(
            "once the garbage collector has deleted it"
        )


@simulated
async def test_later_left_over_object_is_left_to_the_collector_first() -> None:
    async with Harness(PROVIDER, crd()) as harness:
        await harness.create(SPEC)
        harness._server.collects = False
        thing = harness.upstream_object
        await replace_model(harness)
        await harness.advance(PATIENCE + 1)
        before = len(deletions(harness))
        thing["metadata"] = {
            **harness.upstream_object["metadata"],
            "ownerReferences": thing["metadata"]["ownerReferences"],
            "annotations": {},
        }
        harness.put(thing, manager="user")

        await harness.advance(PATIENCE - 10)

        assert len(deletions(harness)) == before
