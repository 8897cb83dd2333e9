"""A paused model writes nothing upstream; deletion takes precedence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import GPU, model_deployment
from support.edits import ADMIN, EDITS, running, until_upstream
from support.kinds import UPSTREAM
from support.waiting import phase, until, until_deployment
from support.wishes import annotate, change_spec

pytestmark = pytest.mark.integration

PAUSED = "reconciliation paused"
EACH = [EDITS["kaito count"], EDITS["dynamo replicas"], EDITS["kuberay application"]]
"""An edit of an administrator for each provider."""


@pytest.mark.parametrize("edit", EACH, ids=UPSTREAM)
async def test_paused_model_writes_nothing_until_resumed(
    suite: Suite, api: Client, namespace: str, edit: Any
) -> None:
    provider, kind = edit.provider, UPSTREAM[edit.provider]
    before = await running(api, namespace, GPU, provider)
    good = edit.read(await api.get(kind, "m", namespace))
    log = AuditLog(suite)

    await annotate(api, namespace, names.PAUSED_ANNOTATION, "true")
    paused = await until_deployment(api, "m", namespace, lambda obj: obj["status"]["message"] == PAUSED)
    assert provider_conditions(paused) == provider_conditions(before)
    assert paused["status"]["phase"] == "Running"
    assert paused["status"]["endpoint"] == before["status"]["endpoint"]
    await api.json_patch(
        kind, "m", namespace, [{"op": "replace", "path": edit.pointer, "value": edit.value}], manager=ADMIN
    )
    await change_spec(api, namespace, "/spec/model/servedName", "renamed")
    # Core has looked at the new generation, and a turn of the provider after that is over.
    await until_deployment(api, "m", namespace, lambda obj: validated(obj) == 2)
    await running(api, namespace, GPU, provider, "later")
    writes = log.writes(f"provider-{provider}", namespace, kind.plural)
    assert [entry for entry in writes if "/m?" in entry] == []
    held = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert provider_conditions(held) == provider_conditions(before)
    assert held["status"]["message"] == PAUSED

    await annotate(api, namespace, names.PAUSED_ANNOTATION, "false")

    await until_upstream(api, kind, namespace, lambda obj: edit.read(obj) != edit.value)
    after = await until_deployment(
        api,
        "m",
        namespace,
        lambda obj: obj["status"]["observedGeneration"] == 2 and phase(obj) == "Running",
    )
    assert PAUSED not in json.dumps(after["status"])
    if provider == "dynamo":
        assert edit.read(await api.get(kind, "m", namespace)) == good


async def test_model_created_paused_is_not_applied(suite: Suite, api: Client, namespace: str) -> None:
    body = model_deployment(
        "m", namespace, GPU, provider="dynamo", annotations={names.PAUSED_ANNOTATION: "true"}
    )
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")

    await running(api, namespace, GPU, "dynamo", "later")

    written, _ = await api.list(UPSTREAM["dynamo"], namespace)
    assert [obj["metadata"]["name"] for obj in written] == ["later"]
    held = await until_deployment(
        api, "m", namespace, lambda obj: (obj.get("status") or {}).get("message") == PAUSED
    )
    assert phase(held) == "Pending"
    assert "finalizers" not in held["metadata"]
    await annotate(api, namespace, names.PAUSED_ANNOTATION, None)
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")


@pytest.mark.parametrize("provider", UPSTREAM)
async def test_deletion_goes_before_pause(suite: Suite, api: Client, namespace: str, provider: str) -> None:
    made = await running(api, namespace, GPU, provider)
    await annotate(api, namespace, names.PAUSED_ANNOTATION, "true")
    await until_deployment(api, "m", namespace, lambda obj: obj["status"]["message"] == PAUSED)

    await api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=made["metadata"]["uid"])

    await until(api, MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    await until(api, UPSTREAM[provider], "m", namespace, lambda obj: obj is None)


def provider_conditions(obj: Object) -> list[Any]:
    """What the provider says, with its transition times."""
    mine = ("ProviderCompatible", "ResourceCreated", "Ready")
    return sorted(
        (item for item in obj["status"]["conditions"] if item["type"] in mine), key=lambda item: item["type"]
    )


def validated(obj: Object) -> int:
    """The generation that core has looked at."""
    [found] = [item for item in obj["status"]["conditions"] if item["type"] == "Validated"]
    return int(found["observedGeneration"])
