"""Reports on a model that the upstream objects cannot be listed, so that its state is unknown (contract §4.2)."""

from __future__ import annotations

from kubefoundry_sdk.api import conditions, managed_fields, reasons
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk.api.live import LiveModelDeployment
from kubefoundry_sdk.provider.reconcile import handover, release
from kubefoundry_sdk.provider.reconcile.context import Context
from kubefoundry_sdk.provider.reconcile.report import Report, Stop
from kubefoundry_sdk.runtime import status


async def report(context: Context, live: Object) -> None:
    """Keep what we reported of a model, with a warning; report a model of which we know nothing as waiting."""
    if (message := context.upstream.unlisted) is None or LiveModelDeployment(live).is_paused:
        return
    if release.has_reported(live, context.manager):
        fields = managed_fields.owned(live, context.manager, "status") or {}
        wanted = managed_fields.project(LiveModelDeployment(live).status, fields.get("f:status", {}))
        generation = wanted.get("observedGeneration", live["metadata"]["generation"])
        stale = conditions.condition(
            reasons.STALE_STATUS, True, "NoUpstreamProgress", message, generation=generation
        )
        kept = [item for item in wanted.get("conditions", ()) if item["type"] != reasons.STALE_STATUS]
        wanted = {**wanted, "conditions": [*kept, stale]}
        for item in kept:
            item.pop("lastTransitionTime", None)
    else:
        found = Report(generation=live["metadata"]["generation"])
        found.stop = Stop(reasons.RESOURCE_CREATED, "ApplyFailed", message, failed=False)
        wanted = found.status(context.provider)
        if handover.spoken_for(live, context.manager):
            wanted = {"conditions": found.conditions()}
    await status.write(
        context.client, context.deployments, MODEL_DEPLOYMENTS, live, wanted, manager=context.manager
    )


def note(context: Context, found: Report) -> None:
    """Add the warning to a report that is built on objects listed earlier."""
    if context.upstream.unlisted and found.observation is not None and not found.stale:
        found.stale, found.stale_reason = context.upstream.unlisted, "NoUpstreamProgress"
