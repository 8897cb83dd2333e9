"""Applies the changes of a plan, or reverts changes by others (contract §4.19)."""

from __future__ import annotations

import logging

from kubefoundry_sdk._api import managed_fields
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._provider.reconcile import drift_repair, release, reported_generation
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.report import Report
from kubefoundry_sdk._provider.write import apply
from kubefoundry_sdk._provider.write.admission import Admission
from kubefoundry_sdk._provider.write.helpers import mark, marked
from kubefoundry_sdk._provider.write.plan import Plan
from kubefoundry_sdk._runtime.store import key_of

log = logging.getLogger(__name__)


async def write(context: Context, kind: Kind, write_plan: Plan, live: Object, report: Report) -> float | None:
    """Write the plan and report it. Return the seconds until the next attempt, or None. Raise as `apply.write`."""
    memory = context.memory(key_of(live))
    report.created = release.created_message(context.provider, live["metadata"]["name"])
    retry = None
    unseen = _unseen(context, write_plan, memory.admission)
    drift_repair.note_overwritten(context, kind, live, write_plan)
    if write_plan.repairs:
        retry = await drift_repair.revert(context, kind, write_plan, live, report)
    else:
        is_new = await apply.write(
            context.client,
            kind,
            context.upstream.objects,
            context.helpers,
            write_plan,
            manager=context.manager,
            admission=memory.admission,
        )
        if is_new:
            log.info("upstream object created", extra=logs.values(upstream=kind.kind))
            if (new := context.upstream.objects.get(key_of(live))) is not None:
                reported_generation.note_idle(memory.generations, new)
        elif write_plan.main in write_plan.changed:
            log.info("upstream object changed", extra=logs.values(upstream=kind.kind))
        keep = [*write_plan.helpers, *write_plan.retained]
        key = key_of(live)
        memory.cleaned |= await apply.prune(
            context.client,
            context.helpers,
            key[0],
            live["metadata"]["uid"],
            keep,
            spared=lambda helper: context.is_of_another(key, helper),
        )
    for obj in write_plan.objects:
        if (stored := _live(context, write_plan, obj)) is None:
            continue
        if obj in unseen and memory.admission.recognizes(mark(obj), stored):
            drift_repair.report_drift(context, live, obj, ("metadata.labels",), managed_fields.UNKNOWN)
        memory.admission.remember(mark(obj), stored)
        memory.cleaned.discard(mark(obj))
    memory.altered = memory.admission.text(marked(write_plan.objects))
    if memory.altered:
        report.created = f"{report.created}; {memory.altered}"
    return retry


def _unseen(context: Context, write_plan: Plan, admission: Admission) -> list[Object]:
    """Return the objects to write that we applied before and that are missing from the stores.

    Somebody has deleted these objects, or removed the labels that we watch.
    """
    return [
        obj
        for obj in write_plan.changed
        if admission.remembers(mark(obj)) and _live(context, write_plan, obj) is None
    ]


def _live(context: Context, write_plan: Plan, obj: Object) -> Object | None:
    return context.upstream.objects.get(key_of(obj)) if obj is write_plan.main else context.helpers.live(obj)
