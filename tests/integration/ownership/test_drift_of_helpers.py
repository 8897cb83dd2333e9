"""Others change helper objects of a model: they are put back, recreated and reported."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, HELPER_KINDS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import CPU, GPU
from support.edits import ADMIN, running
from support.events import until_event
from support.kinds import WORKSPACES
from support.tenant import deployments_available
from support.waiting import message, serves, until, until_deployment

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            {"op": "replace", "path": "/data", "value": {"inference_config.yaml": "{}"}}, id="contents"
        ),
        pytest.param({"op": "remove", "path": "/metadata/ownerReferences"}, id="owner"),
        pytest.param({"op": "remove", "path": "/metadata/labels"}, id="labels"),
        pytest.param(
            {
                "op": "remove",
                "path": "/metadata/annotations/" + names.APPLIED_ANNOTATION.replace("/", "~1"),
            },
            id="record",
        ),
    ],
)
async def test_edited_helper_is_restored(
    suite: Suite, api: Client, namespace: str, change: dict[str, Any]
) -> None:
    await running(api, namespace, GPU, "kaito")
    helper = await helper_of(api, namespace)
    before = await api.get(CONFIG_MAPS, helper, namespace)

    await api.json_patch(CONFIG_MAPS, helper, namespace, [change], manager=ADMIN)

    await until(api, CONFIG_MAPS, helper, namespace, lambda obj: ours(obj) == ours(before))
    after = await api.get(CONFIG_MAPS, helper, namespace)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


async def test_refused_reversal_is_not_blamed_on_an_edit(suite: Suite, api: Client, namespace: str) -> None:
    """With another port under its name, the Service is refused, whatever the ModelDeployment says."""
    async with deployments_available(api, namespace):
        made = await running(api, namespace, CPU, "direct")
        service = made["status"]["endpoint"]["service"]
        port = [{"op": "replace", "path": "/spec/ports/0/port", "value": 81}]
        await api.json_patch(HELPER_KINDS["Service"], service, namespace, port, manager=ADMIN)
        advice = f"change the Service '{service}' accordingly"
        await until_deployment(api, "m", namespace, lambda obj: advice in message(obj, "ResourceCreated"))

        edit = [{"op": "add", "path": "/spec/env", "value": [{"name": "A", "value": "a"}]}]
        await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, edit, manager="test")

        refused = await until_deployment(api, "m", namespace, lambda obj: is_reported(obj, "ResourceCreated"))
    assert advice in message(refused, "ResourceCreated")


def is_reported(model: Object, type_: str) -> bool:
    """Check whether the condition is about the newest generation."""
    [condition] = [one for one in model["status"]["conditions"] if one["type"] == type_]
    return bool(condition["observedGeneration"] == model["metadata"]["generation"])


async def test_edit_of_a_helper_is_reported(suite: Suite, api: Client, namespace: str) -> None:
    await running(api, namespace, GPU, "kaito")
    helper = await helper_of(api, namespace)
    change = [{"op": "replace", "path": "/data/inference_config.yaml", "value": "vllm: {}"}]

    await api.json_patch(CONFIG_MAPS, helper, namespace, change, manager=ADMIN)

    assert await until_event(api, namespace, "DriftDetected") == (
        "Provider resource was modified directly, reconciling: "
        f"data.inference_config.yaml of ConfigMap '{helper}' by {ADMIN}"
    )


async def test_added_key_of_a_helper_is_named_and_stays(suite: Suite, api: Client, namespace: str) -> None:
    await running(api, namespace, GPU, "kaito")
    helper = await helper_of(api, namespace)
    change = [{"op": "add", "path": "/data/extra.yaml", "value": "vllm: {}"}]

    await api.json_patch(CONFIG_MAPS, helper, namespace, change, manager=ADMIN)

    words = f"ConfigMap '{helper}' has fields that others added: data.extra.yaml ({ADMIN}); they are left as they are"
    named = await until_deployment(api, "m", namespace, lambda obj: words in message(obj, "Ready"))
    assert named["status"]["message"].endswith(words)
    assert serves(named)
    assert await until_event(api, namespace, "DriftDetected") == words
    assert (await api.get(CONFIG_MAPS, helper, namespace))["data"]["extra.yaml"] == "vllm: {}"


async def test_deleted_helper_is_recreated(suite: Suite, api: Client, namespace: str) -> None:
    await running(api, namespace, GPU, "kaito")
    helper = await helper_of(api, namespace)
    before = await api.get(CONFIG_MAPS, helper, namespace)

    await api.delete(CONFIG_MAPS, helper, namespace, uid=before["metadata"]["uid"])

    after = await until(
        api,
        CONFIG_MAPS,
        helper,
        namespace,
        lambda obj: obj is not None and obj["metadata"]["uid"] != before["metadata"]["uid"],
    )
    assert after is not None
    assert after["data"] == before["data"]


async def helper_of(api: Client, namespace: str) -> str:
    """Name of the ConfigMap that the Workspace names."""
    return str((await api.get(WORKSPACES, "m", namespace))["inference"]["config"])


def ours(obj: Object | None) -> dict[str, Any]:
    """What the provider states of a ConfigMap."""
    meta = (obj or {}).get("metadata") or {}
    return {
        "data": (obj or {}).get("data"),
        **{name: meta.get(name) for name in ("labels", "annotations", "ownerReferences")},
    }
