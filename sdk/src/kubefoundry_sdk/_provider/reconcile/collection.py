"""Deletes an object that an earlier ModelDeployment has left, if the garbage collector does not (contract §4.12).

The garbage collector usually needs less than a second. More than five minutes were seen after the API server had
restarted twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider.contract import Deployment
from kubefoundry_sdk._provider.reconcile import dry_run
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.report import Stop
from kubefoundry_sdk._provider.reconcile.turn import Turn
from kubefoundry_sdk._provider.write import apply, manifest
from kubefoundry_sdk._runtime.server_side_apply import delete

PATIENCE: Final = 30.0
"""Seconds for which the deletion of all such objects is left to the garbage collector."""


async def collect(turn: Turn, kind: Kind, obj: Object | None, stop: Stop) -> Stop:
    """Delete an object whose owners are all gone, once the garbage collector had its time.

    A user who requests a dry run gets no deletion.

    Args:
        turn: The reconcile of the ModelDeployment that needs the name.
        kind: The object's kind.
        obj: The object, None if there is none.
        stop: Why nothing is written.

    Returns:
        The stop. If all owners of the object are gone, it has the seconds until the next attempt.

    Raises:
        ApiError: The ModelDeployment cannot be read, or the deletion is refused.
    """
    deployment = turn.deployment
    if obj is None or not manifest.is_left_over(obj, name=deployment.name, uid=deployment.uid):
        return stop
    if dry_run.is_requested(turn.live):
        return stop
    stop = replace(
        stop,
        message=f"{stop.message}; this provider deletes it if that takes longer than {PATIENCE:.0f} seconds",
    )
    left = turn.memory.collection.left((deployment.uid,), PATIENCE, turn.context.clock())
    if left > 0:
        return replace(stop, retry=left)
    owners = obj["metadata"]["ownerReferences"]
    # A process with a stale store would take the current ModelDeployment, the object's owner, for an earlier one.
    if await _exists(turn.context, deployment):
        remove = apply.remove_main if kind == turn.kind else delete
        await remove(
            turn.context.client,
            kind,
            obj,
            ours=lambda newest: newest["metadata"].get("ownerReferences") == owners,
        )
    return replace(stop, retry=PATIENCE)


async def _exists(context: Context, deployment: Deployment) -> bool:
    """Check with the API server whether the ModelDeployment of this uid still has the name."""
    try:
        live = await context.client.get_metadata(MODEL_DEPLOYMENTS, deployment.name, deployment.namespace)
    except ApiError as error:
        if error.not_found:
            return False
        raise
    return bool(live["metadata"]["uid"] == deployment.uid)
