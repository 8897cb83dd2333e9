"""Reports that the state of a model is unknown, because the upstream objects cannot be listed (contract §4.2)."""

from __future__ import annotations

from kubefoundry_sdk._api import conditions, reasons
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider.reconcile import handover, own_status, release
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.report import Report, Stop
from kubefoundry_sdk._runtime import status


async def report(context: Context, live: Object) -> None:
    """Add a warning to our report on a model. If there is no report of ours yet, report the waiting model."""
    if (message := context.upstream.unlisted) is None or LiveModelDeployment(live).is_paused:
        return
    if release.has_reported(live, context.manager):
        desired = status.owned(live, context.manager) or {}
        generation = desired.get("observedGeneration", live["metadata"]["generation"])
        stale = conditions.condition(
            reasons.STALE_STATUS, True, "NoUpstreamProgress", message, generation=generation
        )
        kept = [item for item in desired.get("conditions", ()) if item["type"] != reasons.STALE_STATUS]
        desired = {**desired, "conditions": [*kept, stale]}
    else:
        waiting = Report(generation=live["metadata"]["generation"])
        waiting.stop = Stop(reasons.RESOURCE_CREATED, "ApplyFailed", message, failed=False)
        desired = waiting.status(context.provider)
        if handover.is_reported_by_other(live, context.manager):
            desired = {"conditions": waiting.conditions()}
    await own_status.write(context, live, desired)


def note(context: Context, report: Report) -> None:
    """Add the warning to a report that is built on objects listed earlier."""
    if context.upstream.unlisted and report.observation is not None and not report.stale:
        report.stale, report.stale_reason = context.upstream.unlisted, "NoUpstreamProgress"
