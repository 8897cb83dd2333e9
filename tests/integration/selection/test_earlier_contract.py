"""A provider of an earlier contract gets no model with a field that it would ignore."""

from __future__ import annotations

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.registrations import register, until_judged
from support.waiting import message, reason, until_deployment

pytestmark = pytest.mark.integration

NEWER = {**GPU, "engine": {**GPU["engine"], "extraArgs": ["--lora-modules", "a=org/a"]}}
IGNORED = "states no version of the contract, so 0.2 counts, and would ignore engine.extraArgs"


async def test_named_provider_of_earlier_contract_leaves_model_invalid(
    fresh: Suite, api: Client, namespace: str
) -> None:
    fresh.start("core")
    await register(api, "earlier")

    await api.create(
        MODEL_DEPLOYMENTS, model_deployment("m", namespace, NEWER, provider="earlier"), manager="user"
    )
    refused = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "Validated") == "ProviderTooOld"
    )
    assert f"provider earlier {IGNORED}" in message(refused, "Validated")
    assert refused["status"]["message"] == message(refused, "Validated")

    await register(api, "earlier", contract="0.3")
    await until_deployment(api, "m", namespace, lambda obj: reason(obj, "Validated") == "ValidationPassed")


async def test_selector_leaves_provider_of_earlier_contract_out(
    fresh: Suite, api: Client, namespace: str
) -> None:
    fresh.start("core", "selector")
    await until_judged(api, await register(api, "earlier", ("true", 9)))

    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, NEWER), manager="user")
    waiting = await until_deployment(
        api, "m", namespace, lambda obj: reason(obj, "ProviderSelected") == "NoMatchingProvider"
    )
    assert f"earlier {IGNORED}" in message(waiting, "ProviderSelected")

    await until_judged(api, await register(api, "current", ("true", 1), contract="0.3"))
    await until_deployment(
        api, "m", namespace, lambda obj: (obj["status"].get("provider") or {}).get("name") == "current"
    )
