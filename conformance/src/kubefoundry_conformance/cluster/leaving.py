"""LEV: deletions, and time-outs of clean-ups."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kubefoundry_conformance.check import Finding
from kubefoundry_conformance.cluster import waiting
from kubefoundry_conformance.cluster.rig import Rig, of_rig
from kubefoundry_conformance.cluster.waiting import condition
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._api.reasons import RESOURCE_CREATED, VALIDATED

HOLD: Final = "example.com/conformance-holds"
INVALID: Final = {"engine": {"args": {"tensor-parallel-size": "999"}}}
"""Makes any spec invalid: no machine has so many GPUs. Only core refuses it, so the API server accepts it while core
is stopped."""

OTHER: Final = "conformance"
"""A provider that holds a ModelDeployment and never cleans up."""


async def check_deletion_while_paused(rig: Rig) -> Finding | None:
    """Pause a ModelDeployment, delete it, and expect that it and its upstream object disappear."""
    place = rig.place()
    await rig.create(place)
    await rig.upstream(place)
    await rig.annotate(place, names.PAUSED_ANNOTATION, "true")
    await rig.delete(place)
    await rig.gone(place)
    return None


async def check_deletion_without_crd(rig: Rig) -> Finding | None:
    """Remove the upstream CRD, delete a ModelDeployment, and expect that it disappears.

    The CRD is installed again for the next checks.
    """
    place = rig.place()
    await rig.create(place)
    await rig.upstream(place)
    await rig.remove_crd()
    try:
        await rig.delete(place)
        await rig.until(MODEL_DEPLOYMENTS, *place, lambda obj: obj is None)
    finally:
        await rig.install_crd()
        await rig.registered(lambda obj: (obj.get("status") or {}).get("ready"))
    return None


async def check_deletion_of_invalid_spec(rig: Rig) -> Finding | None:
    """Delete a ModelDeployment with an invalid spec, and expect that it and its upstream object disappear.

    The check stops core to write the spec, which its webhook refuses.

    Raises:
        Skipped: The cluster is not the kit's own.
    """
    core = rig.own("core, which refuses an invalid spec, would have to be stopped").components["core"]
    place = rig.place()
    await rig.create(place)
    await rig.upstream(place)
    await asyncio.to_thread(core.stop)
    try:
        await rig.respec(place, INVALID)
    finally:
        core.start()
        await asyncio.to_thread(core.wait_ready)
    await rig.deployment(place, lambda obj: condition(obj, VALIDATED).get("status") == "False")
    await rig.delete(place)
    await rig.gone(place)
    return None


async def check_cleanup_timeout(rig: Rig) -> Finding | None:
    """Hold the upstream object of a deleted ModelDeployment, and expect an Event that names it.

    The subject must remove its finalizer after the time-out, although the object still exists.
    """
    place = rig.place()
    await rig.create(place)
    await rig.upstream(place)
    hold: list[dict[str, Any]] = [{"op": "add", "path": "/metadata/finalizers", "value": [HOLD]}]
    await rig.api.json_patch(rig.kind, *place, hold, manager="somebody")
    await rig.delete(place)
    try:
        await rig.until(MODEL_DEPLOYMENTS, *place, lambda obj: obj is None)
        await waiting.event(rig.api, *place, "FinalizerTimeout", rig.kind.kind)
    finally:
        free: list[dict[str, Any]] = [{"op": "remove", "path": "/metadata/finalizers"}]
        await rig.api.json_patch(rig.kind, *place, free, manager="somebody")
    return None


async def check_wait_for_others(rig: Rig) -> Finding | None:
    """Check that the subject waits for another provider's clean-up, but not forever.

    The object must not exist while the reason is `WaitingForCleanup`, and must exist after the time-out.
    """
    place = rig.place()
    # The other provider itself must own the finalizer: the subject need not wait for any other finalizer.
    finalizers = [names.provider_finalizer(OTHER)]
    await rig.create(place, manager=names.provider_manager(OTHER), finalizers=finalizers)
    await rig.deployment(
        place, lambda obj: condition(obj, RESOURCE_CREATED).get("reason") == "WaitingForCleanup"
    )
    if await rig.stored(place):
        return Finding("the object was made beside another provider's finalizer", "WaitingForCleanup first")
    await rig.upstream(place)
    free: list[dict[str, Any]] = [{"op": "replace", "path": "/metadata/finalizers", "value": [rig.finalizer]}]
    await rig.api.json_patch(MODEL_DEPLOYMENTS, *place, free, manager="somebody")
    return None


CHECKS: Final = (
    of_rig("LEV-2", "deletion while paused", check_deletion_while_paused, "it is gone"),
    of_rig("LEV-2", "deletion with an invalid spec", check_deletion_of_invalid_spec, "it is gone"),
    of_rig("LEV-2", "deletion without the CRD", check_deletion_without_crd, "it is gone"),
    of_rig("LEV-3", "an upstream object that does not go", check_cleanup_timeout, "it is given up"),
    of_rig(
        "LEV-4",
        "another provider's finalizer that stays",
        check_wait_for_others,
        "WaitingForCleanup, and the object after the time-out",
    ),
)
