"""LEV, STA-3: deletions, and the change to another provider."""

from __future__ import annotations

from typing import Any, Final

from kubefoundry_conformance.check import Finding
from kubefoundry_conformance.cluster.rig import Rig, condition, of_rig
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk.api.reasons import RESOURCE_CREATED

HOLD: Final = "example.com/conformance-holds"
OTHER: Final = "kubefoundry.ai/conformance-provider"


async def deletions(rig: Rig) -> Finding | None:
    namespace = await rig.namespace()
    await rig.create(namespace)
    await rig.upstream(namespace)
    await rig.annotate(namespace, names.PAUSED_ANNOTATION, "true")
    await rig.delete(namespace)
    await rig.until(MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
    await rig.until(rig.kind, "m", namespace, lambda obj: obj is None)
    if rig.crd is not None:
        namespace = await rig.namespace()
        await rig.create(namespace)
        await rig.upstream(namespace)
        await rig.remove_crd()
        try:
            await rig.delete(namespace)
            await rig.until(MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
        finally:
            await rig.install_crd()
            await rig.registered(lambda obj: (obj.get("status") or {}).get("ready"))
    return None


async def given_up(rig: Rig) -> Finding | None:
    namespace = await rig.namespace()
    await rig.create(namespace)
    await rig.upstream(namespace)
    hold: list[dict[str, Any]] = [{"op": "add", "path": "/metadata/finalizers", "value": [HOLD]}]
    await rig.api.json_patch(rig.kind, "m", namespace, hold, manager="somebody")
    await rig.delete(namespace)
    try:
        await rig.until(MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is None)
        await rig.event(namespace, "FinalizerTimeout", rig.kind.kind)
    finally:
        free: list[dict[str, Any]] = [{"op": "remove", "path": "/metadata/finalizers"}]
        await rig.api.json_patch(rig.kind, "m", namespace, free, manager="somebody")
    return None


async def waits_for_others(rig: Rig) -> Finding | None:
    namespace = await rig.namespace()
    await rig.create(namespace, finalizers=[OTHER])
    await rig.deployment(
        namespace, lambda obj: condition(obj, RESOURCE_CREATED).get("reason") == "WaitingForCleanup"
    )
    there, _ = await rig.api.list(rig.kind, namespace)
    if there:
        return Finding("the object was made beside another provider's finalizer", "WaitingForCleanup first")
    await rig.upstream(namespace)
    free: list[dict[str, Any]] = [{"op": "replace", "path": "/metadata/finalizers", "value": [rig.finalizer]}]
    await rig.api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, free, manager="somebody")
    return None


CHECKS: Final = (
    of_rig("LEV-2", "deletion while paused, and without the CRD", deletions, "it is gone"),
    of_rig("LEV-3", "an upstream object that does not go", given_up, "it is given up"),
    of_rig(
        "LEV-4",
        "another provider's finalizer that stays",
        waits_for_others,
        "WaitingForCleanup, and the object after the time-out",
    ),
)
