"""Registrations of third-party providers, without a running provider."""

from __future__ import annotations

from typing import Any

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import PROVIDER_CONFIGS, Object
from kubefoundry_sdk._cluster.client import Client
from support.waiting import reason, until

Rule = tuple[str, int]
"""Condition and priority."""


async def register(
    api: Client,
    name: str,
    *rules: Rule,
    engines: tuple[str, ...] = ("vllm",),
    ready: bool = True,
    contract: str | None = None,
) -> Object:
    """Register a provider that serves these engines on GPUs in aggregated mode, and return the stored object."""
    annotations = {"annotations": {names.CONTRACT_ANNOTATION: contract}} if contract else {}
    head = {
        "apiVersion": PROVIDER_CONFIGS.api_version,
        "kind": PROVIDER_CONFIGS.kind,
        "metadata": {"name": name, **annotations},
    }
    spec = {
        "capabilities": {"engines": list(engines), "servingModes": ["aggregated"], "gpuSupport": True},
        "selectionRules": [{"condition": condition, "priority": priority} for condition, priority in rules],
    }
    status = {"ready": ready, "lastHeartbeat": "2026-02-04T10:00:00Z"}
    await api.apply(PROVIDER_CONFIGS, {**head, "spec": spec}, manager=f"{name}-provider")
    return await api.apply_status(PROVIDER_CONFIGS, {**head, "status": status}, manager=f"{name}-provider")


async def until_judged(api: Client, config: Object) -> dict[str, Any]:
    """Return the condition RulesValid, once the selector has judged this generation of the registration."""
    generation = config["metadata"]["generation"]
    judged = await until(
        api,
        PROVIDER_CONFIGS,
        config["metadata"]["name"],
        None,
        lambda obj: obj and rules_valid(obj).get("observedGeneration") == generation,
    )
    assert judged is not None
    return rules_valid(judged)


async def until_upstream(api: Client, provider: str, why: str) -> Object:
    """Return the provider's registration, once its `UpstreamReady` has that reason."""
    registration = await until(
        api,
        PROVIDER_CONFIGS,
        provider,
        None,
        lambda obj: obj is not None and reason(obj, "UpstreamReady") == why,
    )
    assert registration is not None
    return registration


async def unregister(api: Client, name: str) -> None:
    """Delete the registration."""
    live = await api.get(PROVIDER_CONFIGS, name)
    await api.delete(PROVIDER_CONFIGS, name, None, uid=live["metadata"]["uid"])


def rules_valid(config: Object) -> dict[str, Any]:
    """Return the condition RulesValid, or an empty object."""
    return find((config.get("status") or {}).get("conditions"), "RulesValid") or {}
