"""Owners are reset or restored before a hand-over: only the selected provider's own acceptance counts."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.edits import running
from support.kinds import UPSTREAM
from support.restarts import stopped
from support.waiting import phase, reason, until, until_deployment
from support.wishes import edit_model

pytestmark = pytest.mark.integration

RESET = {"op": "replace", "path": "/metadata/managedFields", "value": [{}]}
RESELECT = {"op": "add", "path": "/metadata/annotations", "value": {"kubefoundry.ai/reselect": "1"}}
TO_KUBERAY = {"op": "replace", "path": "/spec/provider/name", "value": "kuberay"}
WAITING = "Waiting for provider dynamo to confirm that it can take over"
GARBAGE = 300.0


async def reset(api: Client, namespace: str) -> None:
    """A tenant removes managedFields: the next apply adds a manager that owns all conditions beside their writers."""
    await edit_model(api, namespace, RESET)


async def restored(api: Client, namespace: str) -> None:
    """A restore tool applies the status as it was exported."""
    live = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    body = {name: live[name] for name in ("apiVersion", "kind", "status")}
    body["metadata"] = {"name": "m", "namespace": namespace}
    await api.apply_status(MODEL_DEPLOYMENTS, body, manager="restore")


@pytest.mark.parametrize("prepare", [reset, restored])
async def test_released_words_are_no_acceptance(
    suite: Suite, api: Client, namespace: str, prepare: Any
) -> None:
    await running(api, namespace, GPU, "kuberay")
    await edit_model(api, namespace, {"op": "remove", "path": "/spec/provider"})
    chosen = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: (
            reason(obj, "ProviderSelected") == "AutoSelected"
            and obj["status"]["observedGeneration"] == obj["metadata"]["generation"]
        ),
    )
    serving = await api.get(UPSTREAM["kuberay"], "m", namespace)
    await prepare(api, namespace)

    with stopped(suite.components["dynamo"]):
        await edit_model(api, namespace, RESELECT)
        waiting = await until_deployment(
            api,
            "m",
            namespace,
            lambda obj: (
                WAITING in obj["status"].get("message", "") and reason(obj, "ResourceCreated") is None
            ),
        )

        kept = await api.get(UPSTREAM["kuberay"], "m", namespace)
        assert kept["metadata"]["uid"] == serving["metadata"]["uid"]
        assert "deletionTimestamp" not in kept["metadata"]
        assert reason(waiting, "ProviderCompatible") is None
        assert phase(waiting) == "Running"
        assert waiting["status"]["endpoint"] == chosen["status"]["endpoint"]

    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: (
            phase(obj) == "Running"
            and obj["status"]["provider"].get("resourceKind") == UPSTREAM["dynamo"].kind
        ),
        seconds=GARBAGE,
    )
    await until(api, UPSTREAM["kuberay"], "m", namespace, lambda obj: obj is None)


async def test_reset_upstream_object_goes_after_the_hand_over(
    suite: Suite, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "dynamo")
    with stopped(suite.components["dynamo"]):
        # Nobody repairs the lost ownership before the hand-over.
        await api.json_patch(UPSTREAM["dynamo"], "m", namespace, [RESET], manager="test")
        await edit_model(api, namespace, TO_KUBERAY)

    await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: (
            phase(obj) == "Running"
            and obj["status"]["provider"].get("resourceKind") == UPSTREAM["kuberay"].kind
            and obj["metadata"]["finalizers"] == ["kubefoundry.ai/kuberay-provider"]
        ),
        seconds=GARBAGE,
    )
    await until(api, UPSTREAM["dynamo"], "m", namespace, lambda obj: obj is None)


async def test_reset_upstream_object_stays_when_refused(suite: Suite, api: Client, namespace: str) -> None:
    await running(api, namespace, {**GPU, "engine": {"type": "sglang"}}, "dynamo")
    with stopped(suite.components["dynamo"]):
        await api.json_patch(UPSTREAM["dynamo"], "m", namespace, [RESET], manager="test")
        await edit_model(api, namespace, TO_KUBERAY)

    refused = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: "Provider kuberay cannot take over" in obj["status"].get("message", ""),
    )

    assert phase(refused) == "Running"
    assert "kubefoundry.ai/dynamo-provider" in refused["metadata"]["finalizers"]
    kept = await api.get(UPSTREAM["dynamo"], "m", namespace)
    assert "deletionTimestamp" not in kept["metadata"]


async def test_lost_ownership_is_repaired(suite: Suite, api: Client, namespace: str) -> None:
    await running(api, namespace, GPU, "dynamo")

    await api.json_patch(UPSTREAM["dynamo"], "m", namespace, [RESET], manager="test")

    await until(
        api,
        UPSTREAM["dynamo"],
        "m",
        namespace,
        lambda obj: (
            obj is not None
            and "dynamo-provider"
            in {entry["manager"] for entry in obj["metadata"].get("managedFields") or ()}
        ),
    )


async def test_object_with_a_second_owner_in_front_is_deleted(
    suite: Suite, api: Client, namespace: str
) -> None:
    made = await running(api, namespace, GPU, "dynamo")
    other = await api.create(
        MODEL_DEPLOYMENTS, model_deployment("other", namespace, GPU, provider="dynamo"), manager="test"
    )
    live = await api.get(UPSTREAM["dynamo"], "m", namespace)
    second = {
        "apiVersion": other["apiVersion"],
        "kind": other["kind"],
        "name": "other",
        "uid": other["metadata"]["uid"],
    }
    owners = [second, *live["metadata"]["ownerReferences"]]
    in_front = {"op": "replace", "path": "/metadata/ownerReferences", "value": owners}
    await api.json_patch(UPSTREAM["dynamo"], "m", namespace, [in_front], manager="test")

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    await until(api, UPSTREAM["dynamo"], "m", namespace, lambda obj: obj is None)
