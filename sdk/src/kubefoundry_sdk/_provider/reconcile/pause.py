"""Annotation `kubefoundry.ai/reconcile-paused: "true"`: nothing upstream is touched (contract §4.5)."""

from __future__ import annotations

from kubefoundry_sdk._api import managed_fields, names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._runtime import status


async def keep_status(context: Context, live: Object) -> None:
    """Keep every status field that the provider owns, and report that nothing is reconciled."""
    fields = managed_fields.owned(live, context.manager, "status")
    if fields is None:
        return
    owned = managed_fields.project(LiveModelDeployment(live).status, fields.get("f:status", {}))
    desired = {**owned, "message": names.PAUSED_MESSAGE}
    for item in desired.get("conditions", ()):
        item.pop("lastTransitionTime", None)
    await status.write(
        context.client, context.deployments, MODEL_DEPLOYMENTS, live, desired, manager=context.manager
    )
