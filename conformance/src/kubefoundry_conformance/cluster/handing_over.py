"""LEV-1, LEV-5, STA-3: hand-over to another provider, which the check simulates."""

from __future__ import annotations

import uuid
from typing import Any, Final

from kubefoundry_conformance.check import Finding
from kubefoundry_conformance.cluster import waiting
from kubefoundry_conformance.cluster.deployments import Place
from kubefoundry_conformance.cluster.rig import Rig, of_rig
from kubefoundry_conformance.cluster.settings import MANAGER, QUIET, now
from kubefoundry_conformance.cluster.waiting import NotSeen
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.conditions import condition as new_condition
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._api.managed_fields import managers
from kubefoundry_sdk._api.reasons import PROVIDER_COMPATIBLE, RESOURCE_CREATED

HOLD: Final = "example.com/conformance-holds"


async def _choose_another(rig: Rig, place: Place) -> str:
    """Register a provider that no rule selects, choose it, and return its name."""
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
    """Accept the ModelDeployment for the chosen provider, as this field manager (contract section 8)."""
    live = await rig.deployment(place)
    generation = live["metadata"]["generation"]
    conditions = (
        new_condition(PROVIDER_COMPATIBLE, True, "CompatibilityVerified", "yes", generation=generation),
        new_condition(RESOURCE_CREATED, False, "WaitingForCleanup", "waiting", generation=generation),
    )
    body = {
        "apiVersion": names.API_VERSION,
        "kind": names.MODEL_DEPLOYMENT,
        "metadata": {key: live["metadata"][key] for key in ("name", "namespace", "uid")},
        "status": {"conditions": [{**item, "lastTransitionTime": now()} for item in conditions]},
    }
    await rig.api.apply_status(MODEL_DEPLOYMENTS, body, manager=manager)


async def check_order(rig: Rig) -> Finding | None:
    """Check that the subject deletes its object, then releases its fields, then removes its finalizer.

    A finalizer of the check keeps the object after its deletion. A release in that time is premature.
    """
    place = rig.place()
    await rig.running(place)
    hold: list[dict[str, Any]] = [{"op": "add", "path": "/metadata/finalizers", "value": [HOLD]}]
    free: list[dict[str, Any]] = [{"op": "remove", "path": "/metadata/finalizers"}]
    await rig.api.json_patch(rig.kind, *place, hold, manager="somebody")
    is_held = True
    try:
        other = await _choose_another(rig, place)
        # The subject may repair a premature release at once, so the check reads every state.
        async with waiting.states(rig.api, MODEL_DEPLOYMENTS, *place) as states:
            await _accept(rig, place, names.provider_manager(other))
            await rig.upstream(place, lambda obj: obj["metadata"].get("deletionTimestamp"))
            # A premature release follows the acceptance at once. A correct one waits until the object is gone.
            try:
                early = await waiting.first(states, lambda obj: _released_part(rig, obj), seconds=QUIET)
                return Finding(
                    f"{_released_part(rig, early)} while the object is still there", "the object goes first"
                )
            except NotSeen:
                pass
            await rig.api.json_patch(rig.kind, *place, free, manager="somebody")
            is_held = False
            live = await waiting.first(states, lambda obj: not _has_finalizer(rig, obj))
            if not _owns_status(rig, live):
                return None
            try:
                await waiting.first(states, lambda obj: not _owns_status(rig, obj), seconds=QUIET)
            except NotSeen:
                return None
            return Finding(
                "the finalizer was removed before the fields were released", "the finalizer goes last"
            )
    finally:
        if is_held:
            await rig.api.json_patch(rig.kind, *place, free, manager="somebody")


async def check_fields_are_released(rig: Rig) -> Finding | None:
    """Check that the subject owns no field of the status once another provider has taken over."""
    place = rig.place()
    await rig.running(place)
    await _accept(rig, place, names.provider_manager(await _choose_another(rig, place)))
    await rig.until(rig.kind, *place, lambda obj: obj is None)
    await rig.deployment(place, lambda obj: not _has_finalizer(rig, obj))
    try:
        await rig.deployment(place, lambda obj: not _owns_status(rig, obj), seconds=QUIET)
    except NotSeen:
        return Finding(f"{rig.manager} still owns fields of the status", "no field, once its object is gone")
    return None


async def check_foreign_acceptance(rig: Rig) -> Finding | None:
    """Check that the subject keeps its object until the chosen provider itself accepts the model.

    First the check writes the acceptance under its own field manager, then under the chosen provider's.
    """
    place = rig.place()
    await rig.running(place)
    other = await _choose_another(rig, place)
    await _accept(rig, place, MANAGER)
    try:
        await rig.until(rig.kind, *place, _is_deleted, seconds=QUIET)
        return Finding(
            f"the object was deleted though {MANAGER} wrote the acceptance",
            "it stays until the provider accepts",
        )
    except NotSeen:
        pass
    await _accept(rig, place, names.provider_manager(other))
    await rig.until(rig.kind, *place, _is_deleted)
    return None


def _is_deleted(obj: Object | None) -> bool:
    return obj is None or bool(obj["metadata"].get("deletionTimestamp"))


def _has_finalizer(rig: Rig, obj: Object) -> bool:
    return rig.finalizer in (obj["metadata"].get("finalizers") or ())


def _owns_status(rig: Rig, obj: Object) -> bool:
    return rig.manager in managers(obj, "status")


def _released_part(rig: Rig, obj: Object) -> str:
    """Return the part that the subject has released, empty if none."""
    if not _has_finalizer(rig, obj):
        return "the finalizer was removed"
    return "" if _owns_status(rig, obj) else "the fields were released"


CHECKS: Final = (
    of_rig("LEV-1", "a hand-over, its object held for a moment", check_order, "the object is deleted"),
    of_rig(
        "LEV-5",
        "an acceptance that another field manager wrote",
        check_foreign_acceptance,
        "a provider's own one counts",
    ),
    of_rig(
        "STA-3",
        "another provider is chosen, and takes over",
        check_fields_are_released,
        "the finalizer is removed",
    ),
)
