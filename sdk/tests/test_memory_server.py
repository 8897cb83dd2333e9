"""The API server in memory through the real client, where the differential test does not cover it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from kubefoundry_sdk._api.crd import provider_configs
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._cluster.client import Client, over
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._cluster.reflector import reflect
from kubefoundry_sdk.testing import simulated
from kubefoundry_sdk.testing._server.server import Server
from kubefoundry_sdk.testing._server.transport import CREDENTIALS, MemoryTransport
from kubefoundry_sdk.testing._simulated import SimulatedLoop


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Server, Client]]:
    """Yield a server with the namespace `default`, and a client."""
    server = Server(lambda: datetime(2026, 1, 1, tzinfo=UTC))
    server.create_namespace("default")
    transport = MemoryTransport(server, user_agent="t")
    async with over(Client(CREDENTIALS, user_agent="t"), transport) as client:
        yield server, client


def config_map(name: str, **metadata: Any) -> Object:
    meta = {"name": name, "namespace": "default", **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": name}}


def owner(obj: Object, **fields: Any) -> dict[str, Any]:
    meta = obj["metadata"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"], **fields}


async def names(client: Client) -> list[str]:
    items, _ = await client.list(CONFIG_MAPS, "default")
    return [item["metadata"]["name"] for item in items]


async def delete(client: Client, obj: Object, propagation: Any) -> None:
    meta = obj["metadata"]
    await client.delete(CONFIG_MAPS, meta["name"], "default", uid=meta["uid"], propagation=propagation)


class Seen:
    """A sink that records its events."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.lists = 0

    def replace(self, objects: Iterator[Any], resource_version: str, *, rewound: bool) -> None:
        self.lists += 1
        self.objects = {obj["metadata"]["name"]: obj for obj in objects}

    def put(self, obj: Object) -> None:
        self.objects[obj["metadata"]["name"]] = obj

    def remove(self, obj: Object) -> None:
        del self.objects[obj["metadata"]["name"]]


@simulated
async def test_reflector_follows_changes_with_one_list() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    seen = Seen()
    async with served() as (_, client):
        follows = asyncio.create_task(reflect(client, CONFIG_MAPS, seen, namespace="default"))
        await loop.advance(1)
        first = await client.create(CONFIG_MAPS, config_map("a"), manager="t")
        await client.create(CONFIG_MAPS, config_map("b"), manager="t")
        await delete(client, first, "Background")
        # An hour without a change: watches end in time, bookmarks keep them alive.
        await loop.advance(3600)
        follows.cancel()

    assert (list(seen.objects), seen.lists) == (["b"], 1)


@simulated
async def test_watch_of_selector_sees_object_come_and_go() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    seen = Seen()
    async with served() as (_, client):
        selector = {"labelSelector": "kind=x"}
        follows = asyncio.create_task(reflect(client, CONFIG_MAPS, seen, selector=selector))
        await client.create(CONFIG_MAPS, config_map("a"), manager="t")
        await loop.advance(1)
        add = [{"op": "add", "path": "/metadata/labels", "value": {"kind": "x"}}]
        await client.json_patch(CONFIG_MAPS, "a", "default", add, manager="t")
        await loop.advance(1)
        assert list(seen.objects) == ["a"]

        remove = [{"op": "remove", "path": "/metadata/labels"}]
        await client.json_patch(CONFIG_MAPS, "a", "default", remove, manager="t")
        await loop.advance(1)
        follows.cancel()

    assert seen.objects == {}


@simulated
async def test_watch_of_forgotten_version_is_gone() -> None:
    async with served() as (server, client):
        _, version = await client.list(CONFIG_MAPS)
        await client.create(CONFIG_MAPS, config_map("a"), manager="t")
        server.store.compact()

        with pytest.raises(ApiError) as refusal:
            async for _ in client.watch(CONFIG_MAPS, resource_version=version, seconds=1, silence=9):
                pass

    assert refusal.value.gone


@simulated
async def test_pages_have_all_objects() -> None:
    async with served() as (_, client):
        for index in range(5):
            await client.create(CONFIG_MAPS, config_map(f"c{index}"), manager="t")

        pages = [len(page) async for page, _ in client.pages(CONFIG_MAPS, limit=2)]

    assert sum(pages) == 5
    assert len(pages) > 1


@pytest.mark.parametrize(
    ("propagation", "left"), [("Background", []), ("Foreground", []), ("Orphan", ["dependent"])]
)
def test_dependents_go_with_owner_unless_orphaned(propagation: str, left: list[str]) -> None:
    @simulated
    async def run() -> list[str]:
        async with served() as (_, client):
            first = await client.create(CONFIG_MAPS, config_map("owner"), manager="t")
            owners = [owner(first, blockOwnerDeletion=True)]
            await client.create(CONFIG_MAPS, config_map("dependent", ownerReferences=owners), manager="t")
            await delete(client, first, propagation)
            return await names(client)

    assert run() == left


@simulated
async def test_foreground_waits_for_blocking_dependent() -> None:
    async with served() as (_, client):
        first = await client.create(CONFIG_MAPS, config_map("owner"), manager="t")
        meta = {"ownerReferences": [owner(first, blockOwnerDeletion=True)], "finalizers": ["example.com/a"]}
        await client.create(CONFIG_MAPS, config_map("dependent", **meta), manager="t")
        await delete(client, first, "Foreground")
        assert await names(client) == ["dependent", "owner"]

        patch = [{"op": "remove", "path": "/metadata/finalizers"}]
        await client.json_patch(CONFIG_MAPS, "dependent", "default", patch, manager="t")

        assert await names(client) == []


@simulated
async def test_conflict_names_manager_and_field() -> None:
    async with served() as (_, client):
        await client.apply(CONFIG_MAPS, config_map("a"), manager="first")
        other = {**config_map("a"), "data": {"a": "other"}}

        with pytest.raises(ApiError, match=r'conflict with "first": \.data\.a') as refusal:
            await client.apply(CONFIG_MAPS, other, manager="second", force=False)

    assert refusal.value.conflicting_fields == (".data.a",)


@simulated
async def test_unknown_field_of_built_in_kind_is_refused() -> None:
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"template": {"spec": {"hostNetwork": True}}},
    }
    async with served() as (_, client):
        with pytest.raises(ApiError, match=r"501 NotImplemented.*hostNetwork"):
            await client.create(DEPLOYMENTS, body, manager="t")


@simulated
async def test_missing_namespace_is_refused() -> None:
    body = config_map("a")
    body["metadata"]["namespace"] = "other"
    async with served() as (_, client):
        with pytest.raises(ApiError, match='namespaces "other" not found'):
            await client.create(CONFIG_MAPS, body, manager="t")


@simulated
async def test_noop_patch_after_deletion_began_keeps_version() -> None:
    body = {
        "apiVersion": PROVIDER_CONFIGS.api_version,
        "kind": PROVIDER_CONFIGS.kind,
        # An apply stores the empty map, and the mark of the deletion is the write that drops it.
        "metadata": {"name": "a", "labels": {}, "finalizers": ["example.com/a"]},
        "spec": {},
    }
    async with served() as (server, client):
        server.install(provider_configs())
        applied = await client.apply(PROVIDER_CONFIGS, body, manager="t")
        await client.delete(PROVIDER_CONFIGS, "a", None, uid=applied["metadata"]["uid"])
        marked = await client.get(PROVIDER_CONFIGS, "a", None)
        patch = [{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/a"]}]
        patched = await client.json_patch(PROVIDER_CONFIGS, "a", None, patch, manager="t")

    assert patched == marked


@simulated
async def test_refused_update_names_problems_of_metadata_and_spec() -> None:
    body = {
        "apiVersion": PROVIDER_CONFIGS.api_version,
        "kind": PROVIDER_CONFIGS.kind,
        "metadata": {"name": "a", "finalizers": ["example.com/a"]},
        "spec": {},
    }
    async with served() as (server, client):
        server.install(provider_configs())
        created = await client.create(PROVIDER_CONFIGS, body, manager="t")
        await client.delete(PROVIDER_CONFIGS, "a", None, uid=created["metadata"]["uid"])
        patch = [
            {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/b"},
            {"op": "add", "path": "/spec/selectionRules", "value": "none"},
        ]
        with pytest.raises(ApiError) as refusal:
            await client.json_patch(PROVIDER_CONFIGS, "a", None, patch, manager="t")

    assert {"metadata.finalizers", "spec.selectionRules"} <= set(
        re.findall(r"[\w.]+(?=: )", str(refusal.value))
    )


@simulated
async def test_watch_keeps_changes_while_its_reader_is_busy() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    seen: list[str] = []

    async with served() as (_, client):
        _, version = await client.list(CONFIG_MAPS)

        async def read() -> None:
            # A bookmark is due while the reader is busy with the first event.
            events = client.watch(CONFIG_MAPS, resource_version=version, seconds=300, silence=100)
            async for event in events:
                if event["type"] == "ADDED":
                    seen.append(event["object"]["metadata"]["name"])
                    await asyncio.sleep(70)

        reader = asyncio.create_task(read())
        await client.create(CONFIG_MAPS, config_map("a"), manager="t")
        await loop.advance(1)
        await client.create(CONFIG_MAPS, config_map("b"), manager="t")
        await loop.advance(200)
        reader.cancel()

    assert seen == ["a", "b"]


@simulated
async def test_apply_that_orders_managers_by_new_time_is_stored() -> None:
    head = {
        "apiVersion": PROVIDER_CONFIGS.api_version,
        "kind": PROVIDER_CONFIGS.kind,
        "metadata": {"name": "a"},
    }
    status = {**head, "status": {"ready": True}}
    # The status endpoint ignores the spec, which makes the manager's time new.
    other = {**status, "spec": {"documentation": "https://b.example"}}
    async with served() as (server, client):
        server.install(provider_configs())
        spec = {"documentation": "https://a.example"}
        await client.apply(PROVIDER_CONFIGS, {**head, "spec": spec}, manager="b")
        first = await client.apply_status(PROVIDER_CONFIGS, status, manager="a")
        same = await client.apply_status(PROVIDER_CONFIGS, other, manager="a")
        server.now = lambda: datetime(2026, 1, 2, tzinfo=UTC)
        changed = await client.apply_status(PROVIDER_CONFIGS, other, manager="a")

    assert same == first
    assert changed["spec"] == first["spec"]
    assert [entry["manager"] for entry in first["metadata"]["managedFields"]] == ["a", "b"]
    assert [entry["manager"] for entry in changed["metadata"]["managedFields"]] == ["b", "a"]


@simulated
async def test_apply_without_change_has_no_time() -> None:
    async with served() as (_, client):
        await client.apply(CONFIG_MAPS, config_map("a"), manager="first")
        applied = await client.apply(CONFIG_MAPS, config_map("a"), manager="second")

    times = {entry["manager"]: entry.get("time") for entry in applied["metadata"]["managedFields"]}
    assert times == {"first": "2026-01-01T00:00:00Z", "second": None}


@simulated
async def test_patch_keeps_ownership_of_zero_grace_period() -> None:
    body = config_map("a", finalizers=["example.com/a"])
    async with served() as (_, client):
        created = await client.create(CONFIG_MAPS, body, manager="t")
        await delete(client, created, "Background")
        live = await client.get(CONFIG_MAPS, "a", "default")
        reset = {**live, "metadata": {**live["metadata"], "managedFields": [{}]}}
        await client.replace(CONFIG_MAPS, reset, manager="t")
        await client.apply(CONFIG_MAPS, config_map("a"), manager="applier")
        patch = [{"op": "add", "path": "/data/b", "value": "b"}]
        patched = await client.json_patch(CONFIG_MAPS, "a", "default", patch, manager="t")

    owned = [
        entry["fieldsV1"]["f:metadata"]
        for entry in patched["metadata"]["managedFields"]
        if "f:metadata" in entry["fieldsV1"]
    ]
    assert any("f:deletionGracePeriodSeconds" in fields for fields in owned)


@simulated
async def test_negative_observed_generation_is_refused() -> None:
    head = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "default"}}
    labels = {"app": "a"}
    pod = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "a", "image": "example.com/a:1"}]},
    }
    async with served() as (_, client):
        spec = {"selector": {"matchLabels": labels}, "template": pod}
        await client.apply(DEPLOYMENTS, {**head, "spec": spec}, manager="t")

        with pytest.raises(ApiError, match=r"422 Invalid.*status\.observedGeneration"):
            await client.apply_status(
                DEPLOYMENTS, {**head, "status": {"observedGeneration": -1}}, manager="t"
            )


@simulated
async def test_apply_fails_on_list_for_time() -> None:
    head = {
        "apiVersion": PROVIDER_CONFIGS.api_version,
        "kind": PROVIDER_CONFIGS.kind,
        "metadata": {"name": "a"},
    }
    async with served() as (server, client):
        server.install(provider_configs())
        await client.create(PROVIDER_CONFIGS, {**head, "spec": {}}, manager="t")
        patch = [{"op": "add", "path": "/status", "value": {"lastHeartbeat": ["now"]}}]
        await client.json_patch(PROVIDER_CONFIGS, "a", None, patch, manager="t", subresource="/status")

        with pytest.raises(ApiError, match=r"500.*status\.lastHeartbeat: expected"):
            await client.apply(PROVIDER_CONFIGS, {**head, "spec": {}}, manager="t")
