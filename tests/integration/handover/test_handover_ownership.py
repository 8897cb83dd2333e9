"""A release goes by ownership: no removed finalizer or owner lets two providers serve for good."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.edits import running
from support.foreign import foreign
from support.kinds import UPSTREAM
from support.waiting import phase, reason, until, until_deployment
from support.wishes import edit_model

pytestmark = pytest.mark.integration

PAIRS = [(old, new) for old in UPSTREAM for new in UPSTREAM if old != new]
GARBAGE = 300.0


async def until_only(api: Client, namespace: str, old: str, new: str) -> None:
    """Until the new provider serves and nothing is left of the old one."""
    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: (
            phase(obj) == "Running"
            and obj["status"]["provider"].get("resourceKind") == UPSTREAM[new].kind
            and obj["metadata"]["finalizers"] == [f"kubefoundry.ai/{new}-provider"]
        ),
        seconds=GARBAGE,
    )
    await until(api, UPSTREAM[old], "m", namespace, lambda obj: obj is None)


@pytest.mark.parametrize(("old", "new"), PAIRS)
async def test_handover_by_replace_without_finalizers(
    suite: Suite, api: Client, namespace: str, old: str, new: str
) -> None:
    await running(api, namespace, GPU, old)
    file = model_deployment("m", namespace, GPU, provider=new)

    suite.plane.kubectl("replace", "-f", "-", input=json.dumps(file))

    await until_only(api, namespace, old, new)


@pytest.mark.parametrize("step", ["nothing", "paused", "refused"])
async def test_removed_finalizer_comes_back(suite: Suite, api: Client, namespace: str, step: str) -> None:
    made = await running(api, namespace, GPU, "dynamo")
    ends: dict[str, list[dict[str, Any]]] = {
        "nothing": [],
        "paused": [
            {
                "op": "add",
                "path": "/metadata/annotations",
                "value": {"kubefoundry.ai/reconcile-paused": "true"},
            }
        ],
        "refused": [{"op": "add", "path": "/spec/scaling/replicas", "value": 0}],
    }

    await edit_model(api, namespace, *ends[step], {"op": "remove", "path": "/metadata/finalizers"})

    await until_deployment(
        api, "m", namespace, lambda obj: obj["metadata"].get("finalizers") == made["metadata"]["finalizers"]
    )


async def test_object_without_its_owner_goes_with_the_provider(
    suite: Suite, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "dynamo")
    # Nobody puts the owner back before it is let go.
    suite.components["dynamo"].stop()
    try:
        orphan = [{"op": "remove", "path": "/metadata/ownerReferences"}]
        await api.json_patch(UPSTREAM["dynamo"], "m", namespace, orphan, manager="test")
        await edit_model(api, namespace, {"op": "replace", "path": "/spec/provider/name", "value": "kuberay"})
    finally:
        suite.start("dynamo")

    await until_only(api, namespace, "dynamo", "kuberay")


async def test_dead_leaders_late_create_is_cleaned_up(suite: Suite, api: Client, namespace: str) -> None:
    made = await running(api, namespace, GPU, "kuberay")
    late = foreign("dynamo", "m", namespace)
    owner = {
        "apiVersion": made["apiVersion"],
        "kind": made["kind"],
        "name": "m",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }
    late["metadata"]["ownerReferences"] = [owner]

    await api.apply(UPSTREAM["dynamo"], late, manager="dynamo-provider")

    await until_only(api, namespace, "dynamo", "kuberay")


async def test_handover_keeps_a_foreign_object_of_the_same_name(
    suite: Suite, api: Client, namespace: str
) -> None:
    """A tenant's own object with our marks on it is not ours: no provider has written it."""
    made = await running(api, namespace, GPU, "kuberay")
    theirs = foreign("dynamo", "m", namespace)
    theirs["metadata"]["annotations"] = {"kubefoundry.ai/owner-uid": made["metadata"]["uid"]}

    await api.create(UPSTREAM["dynamo"], theirs, manager="tenant")
    # A turn of the provider that has seen it, and one for an object of its own after that.
    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("later", namespace, GPU, provider="dynamo"), manager="test"
    )
    await until_deployment(api, "later", namespace, lambda obj: phase(obj) == "Running")

    await api.get(UPSTREAM["dynamo"], "m", namespace)
    held = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert held["metadata"]["finalizers"] == ["kubefoundry.ai/kuberay-provider"]


@pytest.mark.parametrize("condition", ["ProviderCompatible", "ResourceCreated", "Ready"])
async def test_forced_condition_blocks_no_handover(
    suite: Suite, api: Client, namespace: str, condition: str
) -> None:
    made = await running(api, namespace, GPU, "dynamo")
    body = {name: made[name] for name in ("apiVersion", "kind")}
    body["metadata"] = {"name": "m", "namespace": namespace}
    # Half a condition: the rest of it is the provider's.
    body["status"] = {"conditions": [{"type": condition, "message": "by hand"}]}
    await api.apply_status(MODEL_DEPLOYMENTS, body, manager="admin")

    await edit_model(api, namespace, {"op": "replace", "path": "/spec/provider/name", "value": "kuberay"})

    await until_only(api, namespace, "dynamo", "kuberay")


async def forced(api: Client, namespace: str, provider: str) -> Object:
    """A model whose conditions an administrator applied by force, all corrected since."""
    made = await running(api, namespace, GPU, provider)
    body = {name: made[name] for name in ("apiVersion", "kind")}
    body["metadata"] = {"name": "m", "namespace": namespace}
    body["status"] = {
        "conditions": [{**item, "message": "by hand"} for item in made["status"]["conditions"]],
    }
    await api.apply_status(MODEL_DEPLOYMENTS, body, manager="admin")
    return await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: all(item["message"] != "by hand" for item in obj["status"]["conditions"]),
    )


async def test_handover_removes_a_forced_condition_after_an_edit(
    suite: Suite, api: Client, namespace: str
) -> None:
    await forced(api, namespace, "kaito")

    await edit_model(api, namespace, {"op": "add", "path": "/spec/scaling", "value": {"replicas": 2}})

    reported = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderCompatible") == "Unsupported"
    )
    assert reason(reported, "ResourceCreated") is None
    assert phase(reported) == "Running"


async def test_forced_conditions_keep_no_deletion_from_being_reported(
    suite: Suite, api: Client, namespace: str
) -> None:
    made = await forced(api, namespace, "dynamo")
    held = {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/test"]}
    await api.json_patch(UPSTREAM["dynamo"], "m", namespace, [held], manager="test")

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Terminating")
    free = {"op": "remove", "path": "/metadata/finalizers"}
    await api.json_patch(UPSTREAM["dynamo"], "m", namespace, [free], manager="test")
    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
