"""LEV-1, LEV-5, STA-3: another provider is chosen, which the check simulates."""

from __future__ import annotations

import uuid
from typing import Any, Final

from kubefoundry_conformance.check import Finding
from kubefoundry_conformance.cluster import waiting
from kubefoundry_conformance.cluster.rig import MANAGER, QUIET, Place, Rig, now, of_rig
from kubefoundry_conformance.cluster.waiting import NotSeen
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.conditions import condition as said
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk.api.managed_fields import managers
from kubefoundry_sdk.api.reasons import PROVIDER_COMPATIBLE, RESOURCE_CREATED

HOLD: Final = "example.com/conformance-holds"


async def _choose_another(rig: Rig, place: Place) -> str:
    """Registers a provider that no rule selects, and has it chosen; its name."""
    other = f"conformance-{uuid.uuid4().hex[:8]}"
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.PROVIDER_CONFIG,
        "metadata": {"name": other},
        "spec": {"capabilities": {}, "selectionRules": []},
    }
    await rig.add(PROVIDER_CONFIGS, body)
    await rig.respec(place, {"provider": {"name": other}})
    await rig.deployment(place, lambda obj: obj["status"].get("provider", {}).get("name") == other)
    return other


async def _accept(rig: Rig, place: Place, manager: str) -> None:
    """The field manager says that the chosen provider takes over (contract section 8)."""
    live = await rig.deployment(place)
    generation = live["metadata"]["generation"]
    conditions = (
        said(PROVIDER_COMPATIBLE, True, "CompatibilityVerified", "yes", generation=generation),
        said(RESOURCE_CREATED, False, "WaitingForCleanup", "waiting", generation=generation),
    )
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.MODEL_DEPLOYMENT,
        "metadata": {key: live["metadata"][key] for key in ("name", "namespace", "uid")},
        "status": {"conditions": [{**item, "lastTransitionTime": now()} for item in conditions]},
    }
    await rig.api.apply_status(MODEL_DEPLOYMENTS, body, manager=manager)


async def in_order(rig: Rig) -> Finding | None:
    place = rig.place()
    await rig.running(place)
    hold: list[dict[str, Any]] = [{"op": "add", "path": "/metadata/finalizers", "value": [HOLD]}]
    free: list[dict[str, Any]] = [{"op": "remove", "path": "/metadata/finalizers"}]
    await rig.api.json_patch(rig.kind, *place, hold, manager="somebody")
    held = True
    try:
        other = await _choose_another(rig, place)
        # The subject may repair in a moment what it did too early, so every state counts.
        async with waiting.states(rig.api, MODEL_DEPLOYMENTS, *place) as states:
            await _accept(rig, place, names.provider_manager(other))
            await rig.upstream(place, lambda obj: obj["metadata"].get("deletionTimestamp"))
            # What is done too early comes at once; what is done right comes later, when the object is gone.
            try:
                early = await waiting.first(states, lambda obj: _left(rig, obj), seconds=QUIET)
                return Finding(
                    f"{_left(rig, early)} while the object is still there", "the object goes first"
                )
            except NotSeen:
                pass
            await rig.api.json_patch(rig.kind, *place, free, manager="somebody")
            held = False
            live = await waiting.first(states, lambda obj: not _holds(rig, obj))
            if not _reports(rig, live):
                return None
            try:
                await waiting.first(states, lambda obj: not _reports(rig, obj), seconds=QUIET)
            except NotSeen:
                return None
            return Finding(
                "the finalizer was removed before the fields were released", "the finalizer goes last"
            )
    finally:
        if held:
            await rig.api.json_patch(rig.kind, *place, free, manager="somebody")


async def owns_nothing(rig: Rig) -> Finding | None:
    place = rig.place()
    await rig.running(place)
    await _accept(rig, place, names.provider_manager(await _choose_another(rig, place)))
    await rig.until(rig.kind, *place, lambda obj: obj is None)
    await rig.deployment(place, lambda obj: not _holds(rig, obj))
    try:
        await rig.deployment(place, lambda obj: not _reports(rig, obj), seconds=QUIET)
    except NotSeen:
        return Finding(f"{rig.manager} still owns fields of the status", "no field, once its object is gone")
    return None


async def forged(rig: Rig) -> Finding | None:
    place = rig.place()
    await rig.running(place)
    other = await _choose_another(rig, place)
    await _accept(rig, place, MANAGER)
    try:
        await rig.until(rig.kind, *place, _goes, seconds=QUIET)
        return Finding(
            f"the object was deleted though {MANAGER} wrote the acceptance",
            "it stays until the provider accepts",
        )
    except NotSeen:
        pass
    await _accept(rig, place, names.provider_manager(other))
    await rig.until(rig.kind, *place, _goes)
    return None


def _goes(obj: Object | None) -> bool:
    return obj is None or bool(obj["metadata"].get("deletionTimestamp"))


def _holds(rig: Rig, obj: Object) -> bool:
    return rig.finalizer in (obj["metadata"].get("finalizers") or ())


def _reports(rig: Rig, obj: Object) -> bool:
    return rig.manager in managers(obj, "status")


def _left(rig: Rig, obj: Object) -> str:
    """What the subject has let go already, empty where nothing."""
    if not _holds(rig, obj):
        return "the finalizer was removed"
    return "" if _reports(rig, obj) else "the fields were released"


CHECKS: Final = (
    of_rig("LEV-1", "a hand-over, its object held for a moment", in_order, "the object is deleted"),
    of_rig("LEV-5", "an acceptance that another field manager wrote", forged, "a provider's own one counts"),
    of_rig("STA-3", "another provider is chosen, and takes over", owns_nothing, "the finalizer is removed"),
)
