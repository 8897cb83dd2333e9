"""Objects that an upstream object refers to, such as KAITO's ConfigMap for a preset."""

from __future__ import annotations

import pytest
import yaml

from kubefoundry_local.audit_log import requests_by_user
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU
from support.edits import running
from support.kinds import WORKSPACES
from support.waiting import until
from support.wishes import change_spec

pytestmark = pytest.mark.integration


async def test_helper_is_created_before_its_upstream_object(
    suite: Suite, api: Client, namespace: str
) -> None:
    made = await running(api, namespace, GPU, "kaito")

    config = await config_of(api, namespace)
    assert [owner["uid"] for owner in config["metadata"]["ownerReferences"]] == [made["metadata"]["uid"]]
    assert config["metadata"]["labels"]["kubefoundry.ai/managed-by"] == "kubefoundry"
    assert suite.plane.audit_log is not None
    written = [
        entry["objectRef"]["resource"]
        for entry in requests_by_user(suite.plane.audit_log)
        if entry.get("objectRef", {}).get("namespace") == namespace
        and entry["user"]["username"].endswith(":kubefoundry-provider-kaito")
        and entry["objectRef"]["resource"] in ("configmaps", "workspaces")
    ]
    assert written == ["configmaps", "workspaces"]


async def test_helper_is_replaced_when_the_spec_changes(suite: Suite, api: Client, namespace: str) -> None:
    await running(api, namespace, GPU, "kaito")
    before = await config_of(api, namespace)
    name = before["metadata"]["name"]

    await change_spec(api, namespace, "/spec/engine/args", {"max-num-seqs": "7"})

    await until(
        api, WORKSPACES, "m", namespace, lambda obj: obj and obj["inference"]["config"] not in (None, name)
    )
    config = await config_of(api, namespace)
    assert yaml.safe_load(config["data"]["inference_config.yaml"])["vllm"]["max-num-seqs"] == "7"
    # what nothing names any more goes
    await until(api, CONFIG_MAPS, name, namespace, lambda obj: obj is None)


async def test_helper_is_deleted_when_no_longer_rendered(suite: Suite, api: Client, namespace: str) -> None:
    await running(api, namespace, GPU, "kaito")
    name = (await config_of(api, namespace))["metadata"]["name"]

    await change_spec(api, namespace, "/spec/image", "example.com/vllm:1.0.0")

    await until(api, CONFIG_MAPS, name, namespace, lambda obj: obj is None)
    workspace = await until(
        api, WORKSPACES, "m", namespace, lambda obj: obj is not None and "template" in obj["inference"]
    )
    assert workspace is not None
    assert "config" not in workspace["inference"]


async def test_helper_is_deleted_with_the_model(suite: Suite, api: Client, namespace: str) -> None:
    made = await running(api, namespace, GPU, "kaito")

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    left, _ = await api.list(
        CONFIG_MAPS, namespace, selector={"labelSelector": "kubefoundry.ai/managed-by=kubefoundry"}
    )
    assert left == []


async def config_of(api: Client, namespace: str) -> Object:
    """The ConfigMap that the Workspace names."""
    workspace = await api.get(WORKSPACES, "m", namespace)
    return await api.get(CONFIG_MAPS, workspace["inference"]["config"], namespace)
