"""Providers that are only registered: what a third party's provider would say of itself, without a provider."""

from __future__ import annotations

from typing import Any

from kubefoundry_sdk.api.conditions import find
from kubefoundry_sdk.api.kinds import PROVIDER_CONFIGS, Object
from kubefoundry_sdk.cluster.client import Client
from support.waiting import until

Rule = tuple[str, int]
"""Condition and priority."""


async def register(
    api: Client, name: str, *rules: Rule, engines: tuple[str, ...] = ("vllm",), ready: bool = True
) -> Object:
    """A provider of these engines on GPUs, aggregated; the object as stored."""
    head = {
        "apiVersion": PROVIDER_CONFIGS.api_version,
        "kind": PROVIDER_CONFIGS.kind,
        "metadata": {"name": name},
    }
    spec = {
        "capabilities": {"engines": list(engines), "servingModes": ["aggregated"], "gpuSupport": True},
        "selectionRules": [{"condition": condition, "priority": priority} for condition, priority in rules],
    }
    status = {"ready": ready, "lastHeartbeat": "2026-02-04T10:00:00Z"}
    await api.apply(PROVIDER_CONFIGS, {**head, "spec": spec}, manager=f"{name}-provider")
    return await api.apply_status(PROVIDER_CONFIGS, {**head, "status": status}, manager=f"{name}-provider")


async def until_judged(api: Client, config: Object) -> dict[str, Any]:
    """The condition RulesValid, once the selector has looked at this generation of the registration."""
    generation = config["metadata"]["generation"]
    found = await until(
        api,
        PROVIDER_CONFIGS,
        config["metadata"]["name"],
        None,
        lambda obj: obj and rules_valid(obj).get("observedGeneration") == generation,
    )
    assert found is not None
    return rules_valid(found)


async def unregister(api: Client, name: str) -> None:
    live = await api.get(PROVIDER_CONFIGS, name)
    await api.delete(PROVIDER_CONFIGS, name, None, uid=live["metadata"]["uid"])


def rules_valid(config: Object) -> dict[str, Any]:
    """The condition RulesValid, empty where there is none."""
    return find((config.get("status") or {}).get("conditions"), "RulesValid") or {}
