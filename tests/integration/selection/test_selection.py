"""Core and the selector with providers that are only registered: select, keep, hand over, report."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import EVENTS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.registrations import register, until_judged
from support.waiting import SECONDS, reason, until_deployment

pytestmark = pytest.mark.integration


async def change(api: Client, obj: Object, *operations: dict[str, Any]) -> Object:
    meta = obj["metadata"]
    return await api.json_patch(
        MODEL_DEPLOYMENTS, meta["name"], meta["namespace"], operations, manager="user"
    )


def owners_of_name(obj: Object) -> list[str]:
    """Managers of `status.provider.name`."""
    return [
        entry["manager"]
        for entry in obj["metadata"]["managedFields"]
        if "f:name" in entry["fieldsV1"].get("f:status", {}).get("f:provider", {})
    ]


def settled(name: str, owner: str, reason_: str) -> Any:
    """Whether that provider is selected, by that manager alone, for the newest spec."""

    def holds(obj: Object) -> bool:
        status = obj.get("status") or {}
        selected = find(status.get("conditions"), "ProviderSelected") or {}
        return (
            (status.get("provider") or {}).get("name") == name
            and owners_of_name(obj) == [owner]
            and selected.get("reason") == reason_
            and selected.get("observedGeneration") == obj["metadata"]["generation"]
        )

    return holds


async def test_chosen_kept_named_given_back_and_chosen_again(
    fresh: Suite, api: Client, namespace: str
) -> None:
    fresh.start("core", "selector")
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU), manager="user")
    waiting = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderSelected") == "NoHealthyProviders"
    )
    assert "provider" not in waiting["status"]

    config = await register(api, "a", ("spec.engin.type == 'vllm'", 0), ("spec.engine.type == 'vllm'", 0))
    chosen = await until_deployment(api, "m", namespace, settled("a", "provider-selector", "AutoSelected"))
    assert chosen["status"]["provider"]["selectedReason"] == "engine=vllm → a (only vllm provider)"

    await until_event(api, namespace, "Selected provider 'a': engine=vllm → a (only vllm provider)")

    verdict = await until_judged(api, config)
    assert (verdict["status"], verdict["reason"]) == ("False", "InvalidRule")
    assert verdict["message"].startswith("selectionRules[0].condition, column 6: no field 'engin' in spec")

    fresh.components["selector"].kill()
    config = await register(api, "b", ("true", 9))
    fresh.start("selector")
    assert (await until_judged(api, config))["status"] == "True"
    kept = await api.get(MODEL_DEPLOYMENTS, "m", namespace)
    assert kept["status"]["provider"] == chosen["status"]["provider"]

    await change(api, kept, {"op": "add", "path": "/spec/provider", "value": {"name": "a"}})
    named = await until_deployment(
        api, "m", namespace, settled("a", "kubefoundry-core", "ExplicitlySelected")
    )

    await change(api, named, {"op": "remove", "path": "/spec/provider"})
    back = await until_deployment(api, "m", namespace, settled("a", "provider-selector", "AutoSelected"))
    assert back["status"]["provider"]["selectedReason"] == "kept → a (selected before)"

    annotation = {"kubefoundry.ai/reselect": "now"}
    await change(api, back, {"op": "add", "path": "/metadata/annotations", "value": annotation})
    again = await until_deployment(api, "m", namespace, settled("b", "provider-selector", "AutoSelected"))
    assert again["status"]["provider"]["selectedReason"] == "true → b (rule of priority 9)"

    await until_event(api, namespace, "Selected provider 'b': true → b (rule of priority 9)")


async def until_event(api: Client, namespace: str, note: str) -> None:
    """Returns once an Event with that note is there."""
    async with asyncio.timeout(SECONDS):
        while True:
            events, version = await api.list(EVENTS, namespace)
            if any(event["note"] == note for event in events):
                return
            async for event in api.watch(
                EVENTS, namespace, resource_version=version, seconds=600, silence=600
            ):
                if event["object"].get("note") == note:
                    return
