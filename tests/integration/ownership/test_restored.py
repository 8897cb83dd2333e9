"""A backup tool such as Velero restores a model without owner references: the provider adopts the objects."""

from __future__ import annotations

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._provider.write import manifest
from support.deployments import GPU
from support.edits import running
from support.kinds import UPSTREAM
from support.restored import as_restored
from support.waiting import message, phase, reason, until, until_deployment

pytestmark = pytest.mark.integration

OURS = {"labelSelector": "kubefoundry.ai/managed-by=kubefoundry"}


async def backup(api: Client, namespace: str, provider: str) -> list[tuple[Kind, Object]]:
    """Save a running model with its objects, and delete all of it. The ModelDeployment comes last."""
    kind = UPSTREAM[provider]
    made = await running(api, namespace, GPU, provider)
    helpers, _ = await api.list(CONFIG_MAPS, namespace, selector=OURS)
    saved = [(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", **helper}) for helper in helpers]
    saved += [(kind, await api.get(kind, "m", namespace)), (MODEL_DEPLOYMENTS, made)]
    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])
    for kept, obj in reversed(saved):
        await until(api, kept, obj["metadata"]["name"], namespace, lambda found: found is None)
    return saved


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_restored_model_is_adopted(suite: Suite, api: Client, namespace: str, provider: str) -> None:
    kind = UPSTREAM[provider]
    saved = await backup(api, namespace, provider)

    restored = {kept.kind: await api.create(kept, as_restored(obj), manager="velero") for kept, obj in saved}

    serving = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: phase(obj) == "Running" and reason(obj, "ResourceCreated") == "ResourceCreated",
    )
    uid = serving["metadata"]["uid"]
    adopted = await api.get(kind, "m", namespace)
    assert adopted["metadata"]["uid"] == restored[kind.kind]["metadata"]["uid"]
    before, after = manifest.applied(restored[kind.kind]), manifest.applied(adopted)
    assert before is not None
    assert after is not None
    # Nothing but owner and record is written, so nothing restarts.
    assert manifest.body(after.manifest) == manifest.body(before.manifest)
    assert [owner["uid"] for owner in adopted["metadata"]["ownerReferences"]] == [uid]
    helpers, _ = await api.list(CONFIG_MAPS, namespace, selector=OURS)
    assert [helper["metadata"]["ownerReferences"][0]["uid"] for helper in helpers] == [uid] * (len(saved) - 2)
    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=uid)
    for kept, obj in reversed(saved):
        await until(api, kept, obj["metadata"]["name"], namespace, lambda found: found is None)


async def test_orphan_of_another_spec_is_left_unchanged(suite: Suite, api: Client, namespace: str) -> None:
    saved = await backup(api, namespace, "dynamo")
    for kept, obj in saved[:-1]:
        await api.create(kept, as_restored(obj), manager="velero")
    orphan = await api.get(UPSTREAM["dynamo"], "m", namespace)
    other = as_restored(saved[-1][1])
    other["spec"]["model"]["id"] = "org/other"

    await api.create(MODEL_DEPLOYMENTS, other, manager="velero")

    refused = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "NameConflict"
    )
    assert message(refused, "ResourceCreated") == (
        "DynamoGraphDeployment 'm' exists and was created for an earlier ModelDeployment of this name with another "
        "spec, so it is left unchanged: restore that spec to adopt it, delete it, or choose another name"
    )
    after = await api.get(UPSTREAM["dynamo"], "m", namespace)
    assert (after["metadata"]["uid"], after["spec"]) == (orphan["metadata"]["uid"], orphan["spec"])
