"""Which edits move a selection, and which do not; who owns the selection rules."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.events import until_event
from support.registrations import register, unregister, until_judged
from support.suites import install_crd
from support.upstream import standin
from support.waiting import message, reason, serves, until, until_deployment

pytestmark = pytest.mark.integration

RESELECT = "kubefoundry.ai/reselect"
SGLANG = {**GPU, "engine": {"type": "sglang"}}


async def edit(api: Client, namespace: str, path: str, value: Any) -> Object:
    """The user's change of one place of ModelDeployment `m`."""
    change = [{"op": "add", "path": path, "value": value}]
    return await api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, change, manager="user")


def settled(name: str) -> Callable[[Object], bool]:
    """Whether the selector has settled on that provider for the newest spec."""

    def holds(obj: Object) -> bool:
        status = obj.get("status") or {}
        selected = find(status.get("conditions"), "ProviderSelected") or {}
        return (
            (status.get("provider") or {}).get("name") == name
            and (selected.get("status"), selected.get("reason")) == ("True", "AutoSelected")
            and selected.get("observedGeneration") == obj["metadata"]["generation"]
        )

    return holds


async def test_selection_moves_only_by_request_of_the_user(fresh: Suite, api: Client, namespace: str) -> None:
    fresh.start("core", "selector")
    await until_judged(api, await register(api, "a", ("true", 5)))
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU), manager="user")
    first = await until_deployment(api, "m", namespace, settled("a"))

    async def assert_kept(environment: str) -> None:
        """By a change of the spec, which makes the selector look again and has nothing to do with it."""
        await edit(api, namespace, "/spec/env", [{"name": "A", "value": environment}])
        kept = await until_deployment(api, "m", namespace, settled("a"))
        assert kept["status"]["provider"] == first["status"]["provider"]

    # Another provider's priority, its own, its health, its registration.
    await until_judged(api, await register(api, "b", ("true", 9), engines=("vllm", "sglang")))
    await assert_kept("b is preferred")
    await until_judged(api, await register(api, "a", ("false", 0)))
    await assert_kept("a has no rule that matches")
    await register(api, "a", ("false", 0), ready=False)
    await assert_kept("a is not ready")
    await unregister(api, "a")
    await assert_kept("a is not registered")
    await until_judged(api, await register(api, "a", ("true", 5)))
    await assert_kept("a is registered again")

    # The annotation, each value once.
    await edit(api, namespace, "/metadata/annotations", {RESELECT: "1"})
    moved = await until_deployment(api, "m", namespace, settled("b"))
    assert moved["status"]["provider"]["selectedReason"] == "true → b (rule of priority 9)"
    await until_judged(api, await register(api, "b", ("true", 1), engines=("vllm", "sglang")))
    await edit(api, namespace, "/spec/env", [{"name": "A", "value": "the value has been obeyed"}])
    await until_deployment(api, "m", namespace, settled("b"))
    await edit(api, namespace, "/metadata/annotations", {RESELECT: "2"})
    await until_deployment(api, "m", namespace, settled("a"))

    # A spec that the chosen one cannot serve.
    await edit(api, namespace, "/spec/engine/type", "sglang")
    asked = await until_deployment(api, "m", namespace, settled("b"))
    assert asked["status"]["provider"]["selectedReason"] == "engine=sglang → b (only sglang provider)"


async def test_provider_that_refuses_at_first_is_left_out(fresh: Suite, api: Client, namespace: str) -> None:
    for provider in ("kaito", "dynamo"):
        install_crd(fresh, standin(provider).document)
    fresh.simulate("kaito", "dynamo")
    fresh.start("core", "selector", "kaito", "dynamo")
    await until_ready(api, "dynamo")
    # Who has judged this has seen the other.
    await until_judged(api, await give_rule(fresh, api, "kaito", {"condition": "true", "priority": 1}))
    # Too long for the names of Dynamo's Services, of which Dynamo's capabilities say nothing.
    name = "m" * 50

    await api.create(MODEL_DEPLOYMENTS, model_deployment(name, namespace, GPU), manager="user")

    running = await until_deployment(api, name, namespace, serves)
    assert running["status"]["provider"]["name"] == "kaito"
    words = message(running, "ProviderSelected")
    assert words.startswith(
        f"Provider kaito auto-selected; dynamo refused it: name {name} is too long for Dynamo 1.0"
    )
    assert [left_out["name"] for left_out in running["status"]["selection"]["leftOut"]] == ["dynamo"]
    assert reason(running, "ProviderCompatible") == "CompatibilityVerified"
    reported = await until_event(api, namespace, "Unsupported")
    assert reported.startswith(f"name {name} is too long for Dynamo 1.0")


async def test_rules_that_an_admin_changed_stay_the_admins(fresh: Suite, api: Client) -> None:
    install_crd(fresh, standin("kaito").document)
    fresh.start("selector", "kaito")
    changed = await give_rule(fresh, api, "kaito", {"condition": "spec.engine.typ == 'x'", "priority": 7})
    assert (await until_judged(api, changed))["reason"] == "InvalidRule"
    capabilities = {"engines": ["of-the-admin"], "servingModes": ["aggregated"]}
    fresh.plane.kubectl(
        *("patch", "ipc", "kaito", "--type=merge", "-p", json.dumps({"spec": {"capabilities": capabilities}}))
    )

    fresh.components["kaito"].stop()
    fresh.start("kaito")

    kept = await until(
        api, PROVIDER_CONFIGS, "kaito", None, lambda obj: obj and reason(obj, "RulesApplied") is not None
    )
    assert kept is not None
    assert kept["spec"]["selectionRules"] == changed["spec"]["selectionRules"]
    # What a provider can do it knows best.
    assert "of-the-admin" not in kept["spec"]["capabilities"]["engines"]
    applied = find(kept["status"]["conditions"], "RulesApplied") or {}
    assert (applied["status"], applied["reason"]) == ("False", "ManagedByOthers")

    fresh.components["kaito"].stop()
    await unregister(api, "kaito")
    fresh.start("kaito")
    registered = await until(
        api, PROVIDER_CONFIGS, "kaito", None, lambda obj: obj and reason(obj, "UpstreamReady") is not None
    )
    assert registered is not None
    assert reason(registered, "RulesApplied") is None
    assert (await until_judged(api, registered))["status"] == "True"


async def until_ready(api: Client, provider: str) -> None:
    await until(
        api, PROVIDER_CONFIGS, provider, None, lambda obj: obj and (obj.get("status") or {}).get("ready")
    )


async def give_rule(suite: Suite, api: Client, provider: str, rule: dict[str, Any]) -> Object:
    """An admin's edit: one rule more, at the end."""
    await until_ready(api, provider)
    change = [{"op": "add", "path": "/spec/selectionRules/-", "value": rule}]
    suite.plane.kubectl("patch", "ipc", provider, "--type=json", "-p", json.dumps(change))
    return await api.get(PROVIDER_CONFIGS, provider)
