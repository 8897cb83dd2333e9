"""KAITO's inference config and the webhook that checks a Workspace by it: tried before the serving object goes."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from kubefoundry_local.audit_log import requests_by_user
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.edits import running
from support.kinds import WORKSPACES
from support.waiting import message, phase, reason, until, until_deployment
from support.wishes import annotate, change_spec

pytestmark = pytest.mark.integration

TOO_LONG = 9_999_999
"""Tokens that no preset has."""
REFUSED = f"max-model-len {TOO_LONG} exceeds the model's limit"


@pytest.fixture(scope="module")
def suite(strict_suite: Suite) -> Suite:
    return strict_suite


async def test_edit_that_kaito_refuses_leaves_the_model_serving(
    suite: Suite, api: Client, namespace: str
) -> None:
    await running(api, namespace, GPU, "kaito")
    workspace = await api.get(WORKSPACES, "m", namespace)
    before = await configs(api, namespace)

    await change_spec(api, namespace, "/spec/engine/contextLength", TOO_LONG)

    refused = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ApplyRejected"
    )
    assert REFUSED in message(refused, "ResourceCreated")
    assert phase(refused) == "Running"
    assert refused["status"]["endpoint"]["service"] == "m"
    assert await configs(api, namespace) == before
    after = await api.get(WORKSPACES, "m", namespace)
    assert after["metadata"]["uid"] == workspace["metadata"]["uid"]
    assert "deletionTimestamp" not in after["metadata"]
    assert workspaces_deleted(suite, namespace) == 0

    await change_spec(api, namespace, "/spec/engine/contextLength", 4096)

    replaced = await until(
        api,
        WORKSPACES,
        "m",
        namespace,
        lambda obj: obj is not None and obj["metadata"]["uid"] != workspace["metadata"]["uid"],
    )
    assert replaced is not None
    name = replaced["inference"]["config"]
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")
    (gone,) = before
    await until(api, CONFIG_MAPS, gone, namespace, lambda obj: obj is None)
    found = await configs(api, namespace)
    assert [*found] == [name]
    assert yaml.safe_load(found[name]["inference_config.yaml"])["vllm"]["max-model-len"] == "4096"


async def test_dry_run_names_the_objects_it_could_not_try(suite: Suite, api: Client, namespace: str) -> None:
    asked = model_deployment(
        "m", namespace, GPU, provider="kaito", annotations={names.DRY_RUN_ANNOTATION: "true"}
    )
    await api.create(MODEL_DEPLOYMENTS, asked, manager="test")

    shown = await until_deployment(api, "m", namespace, lambda obj: reason(obj, "ResourceCreated"))

    assert reason(shown, "ResourceCreated") == "DryRun"
    found = json.loads(shown["metadata"]["annotations"][names.DRY_RUN_RESULT_ANNOTATION])
    config = found["objects"][-1]["inference"]["config"]
    assert found["accepted"] is None
    assert found["message"].startswith(
        f"Workspace 'm' would be created, but only after ConfigMap '{config}' is created; until then, admission "
        "reports: Workspace 'm' was refused: "
    )
    assert await configs(api, namespace) == {}

    await annotate(api, namespace, names.DRY_RUN_ANNOTATION, None)

    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")


async def test_deleted_config_costs_no_serving_model(suite: Suite, api: Client, namespace: str) -> None:
    await running(api, namespace, GPU, "kaito")
    workspace = await api.get(WORKSPACES, "m", namespace)
    name = workspace["inference"]["config"]
    config = await api.get(CONFIG_MAPS, name, namespace)

    await api.delete(CONFIG_MAPS, name, namespace, uid=config["metadata"]["uid"])

    await until(
        api,
        CONFIG_MAPS,
        name,
        namespace,
        lambda obj: obj is not None and obj["metadata"]["uid"] != config["metadata"]["uid"],
    )
    after = await api.get(WORKSPACES, "m", namespace)
    assert after["metadata"]["uid"] == workspace["metadata"]["uid"]
    assert workspaces_deleted(suite, namespace) == 0


async def configs(api: Client, namespace: str) -> dict[str, Any]:
    """The contents of the provider's ConfigMaps by name."""
    found, _ = await api.list(
        CONFIG_MAPS, namespace, selector={"labelSelector": "kubefoundry.ai/managed-by=kubefoundry"}
    )
    return {obj["metadata"]["name"]: obj["data"] for obj in found}


def workspaces_deleted(suite: Suite, namespace: str) -> int:
    """How often the provider has asked for it."""
    assert suite.plane.audit_log is not None
    return sum(
        entry["verb"] == "delete"
        for entry in requests_by_user(suite.plane.audit_log)
        if entry.get("objectRef", {}).get("namespace") == namespace
        and entry.get("objectRef", {}).get("resource") == "workspaces"
    )
