"""Annotation `kubefoundry.ai/reconcile-paused: "true"`: nothing upstream is touched (contract §4.5)."""

from __future__ import annotations

from typing import Final

from kubefoundry_sdk._api import names, reasons
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider.reconcile import handover, own_status, retained
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.observation import observe
from kubefoundry_sdk._provider.reconcile.report import Report
from kubefoundry_sdk._provider.reconcile.reported_generation import NO_GENERATION
from kubefoundry_sdk._runtime import status
from kubefoundry_sdk._runtime.store import key_of

_ALWAYS: Final = frozenset({"phase", "message", "observedGeneration"})
"""Fields of the status that each report has."""


async def keep_status(context: Context, live: Object) -> None:
    """Keep every status field that the provider owns, and report that nothing is reconciled.

    If somebody has emptied the status, observe once and report again.
    """
    if retained.has_object(context, live) and _has_lost_report(live, context.manager):
        await _report_again(context, live)
        return
    await status.keep(
        context.client,
        context.deployments,
        MODEL_DEPLOYMENTS,
        live,
        manager=context.manager,
        message=names.PAUSED_MESSAGE,
    )


def _has_lost_report(live: Object, manager: str) -> bool:
    """Check whether the status lacks a part of the report on our upstream object.

    A status whose owners are unknown lacks nothing, because somebody has only reset managedFields.
    """
    if handover.is_reported_by_other(live, manager):
        return False
    model = LiveModelDeployment(live)
    is_named = bool(model.provider.get("resourceName"))
    return not (is_named and model.status.keys() >= _ALWAYS and model.condition(reasons.READY))


async def _report_again(context: Context, live: Object) -> None:
    """Report on the upstream object, for the generation that was applied to it, as far as that is known."""
    applied = context.memory(key_of(live)).generations.applied
    report = Report(applied[1] if applied else NO_GENERATION)
    retained.repeat_report(live, report, context.manager)
    for attribute, message in retained.lost_statements(context, live).items():
        setattr(report, attribute, message)
    await observe(context, live, report)
    desired = {**report.status(context.provider), "message": names.PAUSED_MESSAGE}
    await own_status.write(context, live, desired)
