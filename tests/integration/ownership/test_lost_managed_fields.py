"""Somebody edits `metadata.managedFields` of an upstream object, so that the provider no longer owns its fields."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api import managed_fields, names
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.audit import AuditLog
from support.deployments import CPU, GPU, model_deployment
from support.events import until_event
from support.kinds import UPSTREAM
from support.metrics import sample, until_scraped
from support.waiting import reason, until, until_deployment

pytestmark = pytest.mark.integration

KINDS = {**UPSTREAM, "direct": DEPLOYMENTS}


def without_entry(entries: list[Any], manager: str) -> list[Any]:
    return [entry for entry in entries if entry.get("manager") != manager] or [{}]


def without_fields(entries: list[Any], manager: str) -> list[Any]:
    """With an entry of ours that owns next to nothing."""
    fields: Object = {"f:metadata": {"f:labels": {f"f:{names.MANAGED_BY_LABEL}": {}}}}
    return [{**entry, "fieldsV1": fields} if entry.get("manager") == manager else entry for entry in entries]


def reset(entries: list[Any], manager: str) -> list[Any]:
    return [{}]


@pytest.mark.parametrize("edit", [without_entry, without_fields, reset])
@pytest.mark.parametrize("provider", KINDS)
async def test_lost_ownership_is_restored_at_the_event(
    suite: Suite, api: Client, namespace: str, provider: str, edit: Any
) -> None:
    kind, manager = KINDS[provider], names.provider_manager(provider)
    body = model_deployment("m", namespace, CPU if provider == "direct" else GPU, provider=provider)
    await api.create(MODEL_DEPLOYMENTS, body, manager="test")
    await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ResourceCreated") == "ResourceCreated"
    )
    live = await api.get(kind, "m", namespace)
    log = AuditLog(suite)

    entries = edit(live["metadata"]["managedFields"], manager)
    operation = {"op": "replace", "path": "/metadata/managedFields", "value": entries}
    await api.json_patch(kind, "m", namespace, [operation], manager="kubectl-edit")

    await until(api, kind, "m", namespace, lambda obj: obj and owns_content(obj, manager))
    assert "metadata.managedFields" in await until_event(api, namespace, "DriftDetected")
    await until_scraped(
        suite.components[provider],
        lambda series: sample(series, "kubefoundry_reconciliations_pending", provider=provider) == 0,
    )
    model = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert "others added" not in model["status"]["message"]
    # An operator may be quicker, with a conflict.
    assert 1 <= len(log.writes(f"provider-{provider}", namespace, kind.plural)) <= 2


def owns_content(obj: Object, manager: str) -> bool:
    fields = managed_fields.owned(obj, manager) or {}
    return bool({"f:spec", "f:inference"} & fields.keys())
