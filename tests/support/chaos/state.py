"""What is there in the end, as far as it may not depend on how it came about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from kubefoundry_cli import providers
from kubefoundry_sdk._api import names, reasons
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.client import Client
from support.kinds import UPSTREAM
from support.waiting import phase, reason, until_deployment

CONVERGES: Final = 300.0
"""Seconds for each: what has failed eight times in a row is tried again within 50."""

HISTORY: Final = ("observedGeneration", "lastTransitionTime", "selection", "start")
RAY_CLUSTER: Final = re.compile(r"(?<=ray\.io/cluster=)[^,]+")
"""KubeRay names each RayCluster of a RayService at random: the name depends on how often it was replaced."""

RECORDS: Final = (names.APPLIED_ANNOTATION, names.APPLIED_GENERATION_ANNOTATION, names.OWNER_UID_ANNOTATION)


async def converged(api: Client, namespace: str, specs: dict[str, Object]) -> None:
    """Waits until each is served at its own generation, by whom it names. Fails with what was seen last."""
    for name in specs:
        await until_deployment(api, name, namespace, served, seconds=CONVERGES)


def served(obj: Object) -> bool:
    """Whether the object is up to date in all that it says, and serves; or was scaled to zero."""
    status = obj.get("status") or {}
    wanted = ((obj["spec"].get("provider") or {}).get("name")) or status.get("provider", {}).get("name")
    conditions = status.get("conditions") or ()
    generation = obj["metadata"]["generation"]
    return bool(
        (phase(obj) == "Running" or reason(obj, "Ready") == "ScaledToZero")
        and status.get("observedGeneration") == generation
        and status.get("provider", {}).get("name") == wanted
        and obj["metadata"].get("finalizers") == [names.provider_finalizer(wanted)]
        and all(item.get("observedGeneration") == generation for item in conditions)
    )


async def seen(api: Client, namespace: str) -> dict[str, Any]:
    """Status, upstream object and helpers by the name of the ModelDeployment, without times, uids and generations."""
    found: dict[str, Any] = {}
    deployments, _ = await api.list(MODEL_DEPLOYMENTS, namespace)
    for obj in deployments:
        found[f"ModelDeployment {obj['metadata']['name']}"] = _status(obj.get("status") or {})
    living = {obj["metadata"]["uid"] for obj in deployments}
    for provider, kind in UPSTREAM.items():
        others = providers.named(provider).ignored_differences
        objects, _ = await api.list(kind, namespace)
        for obj in objects:
            if _is_left_to_the_collector(obj, living):
                continue
            found[f"{kind.kind} {obj['metadata']['name']}"] = upstream(obj, others)
    helpers, _ = await api.list(
        CONFIG_MAPS, namespace, selector={"labelSelector": f"{names.MANAGED_BY_LABEL}=kubefoundry"}
    )
    for obj in helpers:
        if _is_left_to_the_collector(obj, living):
            continue
        found[f"ConfigMap {obj['metadata']['name']}"] = _made(obj) | {"data": obj.get("data")}
    return found


def upstream(obj: Object, others: Sequence[str]) -> dict[str, Any]:
    """What a provider decides on.

    others: paths that it sets once and then leaves to others, as how many workers the object began with.
    """
    parts = {key: _without_empty(obj[key]) for key in ("spec", "resource", "inference") if key in obj}
    for path in others:
        parts = _without(parts, path.split("."))
    return _made(obj) | parts


def _is_left_to_the_collector(obj: Object, living: set[str]) -> bool:
    """Of a ModelDeployment that somebody took the finalizers off. The garbage collector takes minutes after several
    restarts of the API server."""
    owners = {owner["uid"] for owner in obj["metadata"].get("ownerReferences", ())}
    return bool(owners) and not owners & living


def _without_empty(value: Any) -> Any:
    """Without empty maps, which a Go client adds when it writes an object: whether before or after our last apply
    is chance, and they say nothing."""
    if isinstance(value, dict):
        kept = {key: _without_empty(child) for key, child in value.items()}
        return {key: child for key, child in kept.items() if child != {}}
    return [_without_empty(child) for child in value] if isinstance(value, list) else value


def _without(value: Any, path: Sequence[str]) -> Any:
    """Without the path; `[*]` means every item."""
    name, items = path[0].removesuffix("[*]"), path[0].endswith("[*]")
    if not isinstance(value, dict) or name not in value:
        return value
    if len(path) == 1:
        return {key: child for key, child in value.items() if key != name}
    rest = path[1:]
    child = [_without(one, rest) for one in value[name]] if items else _without(value[name], rest)
    return {**value, name: child}


def _status(status: Object) -> Object:
    kept = {key: value for key, value in status.items() if key not in (*HISTORY, "conditions", "provider")}
    if "selector" in kept:
        kept["selector"] = RAY_CLUSTER.sub("NAME", kept["selector"])
    provider = {key: value for key, value in status.get("provider", {}).items() if key != "selectedReason"}
    conditions = {
        item["type"]: (item["status"], item["reason"])
        for item in status.get("conditions", ())
        # Who has chosen is no matter; and the health is reported once something was wrong, and that it is well again.
        if item["type"] not in (reasons.PROVIDER_SELECTED, reasons.PROVIDER_HEALTHY)
    }
    return {**kept, "provider": provider, "conditions": conditions}


def _made(obj: Object) -> dict[str, Any]:
    meta = obj["metadata"]
    annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key not in RECORDS}
    owners = [(owner["kind"], owner["name"]) for owner in meta.get("ownerReferences", ())]
    return {"labels": meta.get("labels"), "annotations": annotations, "owners": owners}
