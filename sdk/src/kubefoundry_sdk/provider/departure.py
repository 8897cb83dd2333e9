"""Letting a ModelDeployment go: it is being deleted, or belongs to another provider now (contract §4.2, §4.4)."""

from __future__ import annotations

import logging

from kubefoundry_sdk.api import conditions, names, reasons
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk.cluster.errors import ApiError
from kubefoundry_sdk.provider import finalizer
from kubefoundry_sdk.provider.context import Shim
from kubefoundry_sdk.runtime import status

log = logging.getLogger(__name__)


async def terminate(shim: Shim, live: Object, mine: bool) -> float | None:
    """Step 2: delete upstream, wait, let the ModelDeployment go; after the time-out in any case.

    Raises ApiError or Unreachable, before the time-out, where the deletion upstream fails.
    """
    remaining = finalizer.time_left(live, shim.finalizer_timeout, shim.now())
    try:
        left = await finalizer.clean_up(
            shim.client, live, shim.upstream.kind, shim.upstream.objects, shim.helpers
        )
    except ApiError as error:
        if remaining > 0:
            if mine and error.rejected:
                await _tell_terminating(
                    shim, live, f"Deleting what was made upstream failed: {error.message}"
                )
            raise
        left = [str(error)]
    if left and remaining > 0:
        if mine:
            await _tell_terminating(shim, live, f"Waiting for {', '.join(left)} to be deleted")
        return remaining + 0.1
    await _release(shim, live, left)
    return None


async def give_up(shim: Shim, live: Object) -> float | None:
    """Step 2 while the upstream objects are not known, because the API server does not list them."""
    remaining = finalizer.time_left(live, shim.finalizer_timeout, shim.now())
    if remaining > 0:
        return remaining + 0.1
    meta = live["metadata"]
    upstream = shim.provider.upstream
    left = f"{upstream.kind} {meta['namespace']}/{meta['name']} (unknown: {upstream.crd} cannot be listed)"
    await _release(shim, live, [left])
    return None


async def _release(shim: Shim, live: Object, left: list[str]) -> None:
    """Takes our finalizer off, and says what is left behind."""
    meta = live["metadata"]
    if left:
        note = "Finalizer removed after timeout, provider resource may be orphaned"
        log.warning("%s/%s: %s: %s", meta["namespace"], meta["name"], note, ", ".join(left))
        shim.recorder.event(live, "Warning", "FinalizerTimeout", f"{note}: {', '.join(left)}")
    own = names.provider_finalizer(shim.provider.name)
    current = shim.deployments.get((meta["namespace"], meta["name"]))
    if current and current["metadata"]["uid"] == meta["uid"]:
        await finalizer.remove(shim.client, shim.deployments, current, own, manager=shim.manager)


async def _tell_terminating(shim: Shim, live: Object, message: str) -> None:
    generation = live["metadata"]["generation"]
    wanted = {
        "phase": "Terminating",
        "message": message,
        "observedGeneration": generation,
        "conditions": [
            conditions.condition(
                reasons.RESOURCE_CREATED, False, "Terminating", message, generation=generation
            ),
            conditions.condition(reasons.READY, False, "Progressing", message, generation=generation),
        ],
    }
    await status.write(shim.client, shim.deployments, MODEL_DEPLOYMENTS, live, wanted, manager=shim.manager)


async def let_go(shim: Shim, live: Object, held: bool) -> float | None:
    """Step 4: with our finalizer on it, clean up, release every status field, and take the finalizer off.

    An empty provider name changes nothing: whoever selects has not decided, and what runs goes on running.
    """
    name = ((live.get("status") or {}).get("provider") or {}).get("name")
    if not name:
        return None
    if held and await finalizer.clean_up(
        shim.client, live, shim.upstream.kind, shim.upstream.objects, shim.helpers
    ):
        return None
    key = (live["metadata"]["namespace"], live["metadata"]["name"])
    try:
        await status.write(shim.client, shim.deployments, MODEL_DEPLOYMENTS, live, {}, manager=shim.manager)
    except ApiError as error:
        if error.code != 422:
            raise
        # Core still shares one of our conditions, and its part alone is none. It drops that at the event that
        # brought us here, so to us this is a conflict like any other.
        raise ApiError(409, "Conflict", error.message) from error
    current = shim.deployments.get(key)
    if held and current and current["metadata"]["uid"] == live["metadata"]["uid"]:
        own = names.provider_finalizer(shim.provider.name)
        await finalizer.remove(shim.client, shim.deployments, current, own, manager=shim.manager)
    return None
