"""A namespace is deleted with all its models, or restored from a backup."""

from __future__ import annotations

import copy
import time
from collections import Counter

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS, NAMESPACES, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import GPU, model_deployment
from support.edits import running
from support.kinds import UPSTREAM
from support.waiting import phase, reason, until, until_deployment

pytestmark = pytest.mark.integration

MANY = 60
SECONDS = 300.0
"""Bound on each wait for that many: what takes time is the API server's own work."""


async def test_namespace_of_many_goes_and_nothing_is_left(suite: Suite, api: Client, namespace: str) -> None:
    providers = list(UPSTREAM)
    bodies = [
        model_deployment(f"m-{index}", namespace, GPU, provider=providers[index % 3]) for index in range(MANY)
    ]
    for body in bodies:
        await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    for index in range(MANY):
        await until_deployment(
            api, f"m-{index}", namespace, lambda obj: phase(obj) == "Running", seconds=SECONDS
        )
    live = await api.get(NAMESPACES, namespace)
    log = AuditLog(suite)
    started = time.perf_counter()

    await api.delete(NAMESPACES, namespace, None, uid=live["metadata"]["uid"])

    await until(api, NAMESPACES, namespace, None, lambda obj: obj is None, seconds=SECONDS)
    print(f"{MANY} ModelDeployments and their namespace gone in {time.perf_counter() - started:.1f} s")
    for kind in (MODEL_DEPLOYMENTS, CONFIG_MAPS, *UPSTREAM.values()):
        items, _ = await api.list(kind, namespace)
        assert items == []
    assert all(component.running for component in suite.components.values())
    # What the namespace controller deletes before its ModelDeployment is recreated in vain, once.
    refused = Counter(
        (entry["objectRef"]["resource"], entry["objectRef"].get("name"))
        for _, entry in log.all(namespace)
        if entry["responseStatus"]["code"] == 403 and entry["objectRef"]["resource"] != "events"
    )
    assert max(refused.values(), default=0) <= 1


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_restored_namespace_is_recreated_from_a_backup(
    suite: Suite, api: Client, namespace: str, provider: str
) -> None:
    kind = UPSTREAM[provider]
    made = await running(api, namespace, GPU, provider)
    saved = [(MODEL_DEPLOYMENTS, made), (kind, await api.get(kind, "m", namespace))]
    helpers, _ = await api.list(
        CONFIG_MAPS, namespace, selector={"labelSelector": "kubefoundry.ai/managed-by=kubefoundry"}
    )
    saved += [(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", **helper}) for helper in helpers]
    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])
    for kept, obj in reversed(saved):
        await until(api, kept, obj["metadata"]["name"], namespace, lambda found: found is None)

    restored: dict[str, Object] = {}
    for kept, obj in reversed(saved):
        restored[kept.kind] = await api.create(kept, as_restored(obj), manager="velero")

    dead = restored[kind.kind]["metadata"]["uid"]
    upstream = await until(
        api,
        kind,
        "m",
        namespace,
        lambda obj: obj is not None and obj["metadata"]["uid"] != dead,
        seconds=SECONDS,
    )
    running_again = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: phase(obj) == "Running" and reason(obj, "ResourceCreated") == "ResourceCreated",
    )
    assert upstream is not None
    assert running_again["metadata"]["uid"] != made["metadata"]["uid"]
    [owner] = upstream["metadata"]["ownerReferences"]
    assert owner["uid"] == running_again["metadata"]["uid"]
    for helper in helpers:
        again = await api.get(CONFIG_MAPS, helper["metadata"]["name"], namespace)
        assert again["metadata"]["ownerReferences"][0]["uid"] == running_again["metadata"]["uid"]
    # And the finalizers that came with it hold nothing up.
    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=running_again["metadata"]["uid"])
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    await until(api, kind, "m", namespace, lambda obj: obj is None)


def as_restored(obj: Object) -> Object:
    """What a backup tool creates: all metadata but what the API server sets, finalizers and owners included."""
    made = copy.deepcopy(obj)
    made.pop("status", None)
    for name in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
        made["metadata"].pop(name, None)
    return made
