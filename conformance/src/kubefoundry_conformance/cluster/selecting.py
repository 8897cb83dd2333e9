"""SEL: a selector beside core, with providers that the checks register."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

from kubefoundry_conformance.check import Finding
from kubefoundry_conformance.cluster.rig import MANAGER, QUIET, NotSeen, Rig, condition, of_rig
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.conditions import condition as told
from kubefoundry_sdk.api.kinds import LEASES, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk.api.managed_fields import managers
from kubefoundry_sdk.api.reasons import PROVIDER_COMPATIBLE, PROVIDER_SELECTED, VALIDATED

WANTED: Final = {
    "model": {"id": "org/model"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def selected(obj: Object) -> str:
    """The provider that the selector chose, empty where it has not."""
    if condition(obj, PROVIDER_SELECTED).get("reason") != "AutoSelected":
        return ""
    return str(((obj.get("status") or {}).get("provider") or {}).get("name", ""))


async def register(rig: Rig, *, ready: dict[str, bool]) -> None:
    """The providers of the check, each with a heartbeat of now."""
    for priority, name in enumerate(rig.providers):
        head = {
            "apiVersion": names.API_VERSION,
            "kind": names.PROVIDER_CONFIG,
            "metadata": {"name": name},
        }
        can = {"engines": ["vllm"], "servingModes": ["aggregated"], "gpuSupport": True, "cpuSupport": True}
        rules = [{"condition": "true", "priority": priority}]
        await rig.api.apply(
            PROVIDER_CONFIGS,
            {**head, "spec": {"capabilities": can, "selectionRules": rules}},
            manager=MANAGER,
        )
        status = {"ready": ready.get(name, True), "lastHeartbeat": _now()}
        await rig.api.apply_status(PROVIDER_CONFIGS, {**head, "status": status}, manager=MANAGER)


async def ask(rig: Rig, namespace: str, **metadata: Any) -> Object:
    """A ModelDeployment that names no provider."""
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.MODEL_DEPLOYMENT,
        "metadata": {"name": "m", "namespace": namespace, **metadata},
        "spec": WANTED,
    }
    return await rig.api.create(MODEL_DEPLOYMENTS, body, manager=MANAGER)


async def chosen(rig: Rig) -> tuple[str, str]:
    """A namespace with a ModelDeployment, and the provider that was selected for it."""
    await register(rig, ready={})
    namespace = await rig.namespace()
    await ask(rig, namespace)
    return namespace, selected(await rig.deployment(namespace, selected))


async def holds_the_lease(rig: Rig) -> Finding | None:
    def renewed(obj: Object) -> Any:
        return (obj.get("spec") or {}).get("holderIdentity") and obj["spec"].get("renewTime")

    where = (LEASES, names.SELECTOR_LEASE, names.SYSTEM_NAMESPACE)
    first = renewed(await rig.there(*where, renewed))
    await rig.there(*where, lambda obj: renewed(obj) not in (None, first))
    return None


async def waits_for_core(rig: Rig) -> Finding | None:
    await register(rig, ready={})
    core = rig.suite.components["core"]
    await asyncio.to_thread(core.stop)
    try:
        namespace = await rig.namespace()
        await ask(rig, namespace)
        try:
            live = await rig.until(
                MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj and selected(obj), seconds=QUIET
            )
            return Finding(f"{selected(live or {})} was selected before core said {VALIDATED}", "no decision")
        except NotSeen:
            pass
    finally:
        core.start()
        await asyncio.to_thread(core.wait_ready)
    await rig.deployment(namespace, selected)
    return None


async def stays(rig: Rig) -> Finding | None:
    namespace, name = await chosen(rig)
    change = [{"op": "add", "path": "/spec/model/servedName", "value": "renamed"}]
    await rig.api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, change, manager=MANAGER)
    await asyncio.to_thread(rig.subject.stop)
    rig.subject.start()
    await asyncio.to_thread(rig.subject.wait_ready)
    await register(rig, ready={name: False})
    try:
        other = await rig.deployment_soon(namespace, lambda obj: selected(obj) not in ("", name))
        return Finding(f"{selected(other)} in place of {name}, though nothing asked for it", name)
    except NotSeen:
        return None


async def chooses_again(rig: Rig) -> Finding | None:
    namespace, name = await chosen(rig)
    await register(rig, ready={name: False})
    await rig.annotate(namespace, names.RESELECT_ANNOTATION, "again")
    await rig.deployment(namespace, lambda obj: selected(obj) not in ("", name))
    return None


async def leaves_out_who_refuses(rig: Rig) -> Finding | None:
    namespace, name = await chosen(rig)
    live = await rig.deployment(namespace)
    said = told(
        PROVIDER_COMPATIBLE, False, "Unsupported", "not this one", generation=live["metadata"]["generation"]
    )
    meta = {key: live["metadata"][key] for key in ("name", "namespace", "uid")}
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.MODEL_DEPLOYMENT,
        "metadata": meta,
        "status": {"conditions": [{**said, "lastTransitionTime": _now()}]},
    }
    await rig.api.apply_status(MODEL_DEPLOYMENTS, body, manager=names.provider_manager(name))
    await rig.deployment(namespace, lambda obj: selected(obj) not in ("", name))
    return None


async def only_ready_ones(rig: Rig) -> Finding | None:
    for name in rig.providers:
        await register(rig, ready={other: other == name for other in rig.providers})
        namespace = await rig.namespace()
        await ask(rig, namespace)
        got = selected(await rig.deployment(namespace, selected))
        if got != name:
            return Finding(f"{got} was selected, which is not ready", name)
    return None


async def says_that_there_is_none(rig: Rig) -> Finding | None:
    await register(rig, ready=dict.fromkeys(rig.providers, False))
    namespace = await rig.namespace()
    await ask(rig, namespace)
    live = await rig.deployment(namespace, lambda obj: condition(obj, PROVIDER_SELECTED))
    said = condition(live, PROVIDER_SELECTED)
    if said["status"] != "False" or said["reason"] not in ("NoHealthyProviders", "NoMatchingProvider"):
        return Finding(
            f"{said['status']} {said['reason']}", "False, NoHealthyProviders or NoMatchingProvider"
        )
    return None


async def leaves_paused_ones(rig: Rig) -> Finding | None:
    await register(rig, ready={})
    namespace = await rig.namespace()
    await ask(rig, namespace, annotations={names.PAUSED_ANNOTATION: "true"})
    await chosen(rig)
    live = await rig.deployment(namespace)
    if selected(live):
        return Finding(f"{selected(live)} was selected for a paused one", "nothing")
    await rig.annotate(namespace, names.PAUSED_ANNOTATION, None)
    await rig.deployment(namespace, selected)
    return None


async def releases(rig: Rig) -> Finding | None:
    namespace, name = await chosen(rig)
    change = [{"op": "add", "path": "/spec/provider", "value": {"name": name}}]
    await rig.api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, change, manager=MANAGER)
    await rig.deployment(namespace, lambda obj: names.SELECTOR_MANAGER not in managers(obj, "status"))
    return None


CHECKS: Final = (
    of_rig("SEL-1", "the Lease, twice renewed", holds_the_lease, "a Lease with another renewTime"),
    of_rig("SEL-2", "a ModelDeployment while core is away", waits_for_core, "a selection once core is back"),
    of_rig("SEL-3", "an edit, a restart, and a provider that is not ready any more", stays, "a selection"),
    of_rig("SEL-4", "reselect while the selected one is not ready", chooses_again, "another provider"),
    of_rig("SEL-5", "the selected one refuses", leaves_out_who_refuses, "another provider"),
    of_rig("SEL-6", "one ready provider after another", only_ready_ones, "the one that is ready"),
    of_rig("SEL-7", "no ready provider", says_that_there_is_none, "ProviderSelected"),
    of_rig("SEL-8", "a paused ModelDeployment", leaves_paused_ones, "a selection once it is not paused"),
    of_rig("SEL-9", "the user names a provider", releases, "no field of provider-selector"),
)
