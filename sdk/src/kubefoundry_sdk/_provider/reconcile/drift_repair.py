"""Reverts changes by others on upstream objects, and backs off if they repeat them (contract §4.19)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubefoundry_sdk._api import managed_fields, reasons
from kubefoundry_sdk._api.conditions import first_of
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider.reconcile import release, reported_generation
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.report import Report
from kubefoundry_sdk._provider.write import apply, drift, foreign_values, lost_ownership, manifest
from kubefoundry_sdk._provider.write.admission import Admission, recorded
from kubefoundry_sdk._provider.write.helpers import kind_of, mark, whole
from kubefoundry_sdk._provider.write.plan import Plan
from kubefoundry_sdk._runtime import repairs
from kubefoundry_sdk._runtime.refusals import Refused
from kubefoundry_sdk._runtime.store import key_of

Repairs = list[tuple[Object, tuple[str, ...]]]

_WITHOUT_PODS: Final = re.compile(r"metadata\b|.*\b(replicas|minReplicas|maxReplicas)$")
"""Paths of a main object at which a change replaces no pod. A template's metadata begins with `spec`."""


async def revert(
    context: Context, kind: Kind, write_plan: Plan, deployment: Object, report: Report
) -> float | None:
    """Apply the objects of the plan again, with an Event that names the fields and the manager that changed them.

    Values that admission changes are left as they are. After `repairs.LIMIT` repairs, report the limit and change
    nothing. Raises as `apply.write`. A value that admission removed is applied again, too, but does not count as
    a repair, because the back-off of its refusal bounds these writes.

    Returns:
        Seconds until the next attempt after the limit is reached, else None.
    """
    memory = context.memory(key_of(deployment))
    history = memory.repairs
    now = asyncio.get_running_loop().time()
    changed = [
        (obj, memory.admission.without_removed(mark(obj), paths))
        for obj, paths in await _changed_by_others(context, kind, write_plan, deployment)
    ]
    if any(paths for _, paths in changed) and (wait := history.wait(now)):
        report.left_alone = " and ".join(_fields(obj, paths) for obj, paths in changed if paths)
        report.created = _limit_message(report.left_alone)
        context.recorder.event(deployment, "Warning", "DriftDetected", report.created)
        return wait
    for obj, paths in changed:
        is_main = obj is write_plan.main
        note_pods(context, deployment, paths if is_main else ())
        obj_kind = kind if is_main else kind_of(obj)
        store = context.upstream.objects if is_main else context.helpers.store(obj)
        # Read the writer first, because the apply makes the fields ours.
        writer = managed_fields.UNKNOWN
        if paths:
            writer = await apply.last_writer(context.client, obj_kind, obj, paths, manager=context.manager)
        try:
            await apply.revert(
                context.client, obj_kind, store, obj, manager=context.manager, admission=memory.admission
            )
        except Refused:
            # Count the attempt, because the API server may have stored a part. A conflict corrects nothing and does
            # not count.
            if paths:
                history.note(now)
            raise
        if paths:
            history.note(now)
        # After a refusal, a difference without a known writer may come from our own write.
        if paths and not (writer == managed_fields.UNKNOWN and _is_refused(context, deployment)):
            report_drift(context, deployment, obj, paths, writer)
    return None


def note_pods(context: Context, deployment: Object, paths: Sequence[str]) -> None:
    """Note that pods of a foreign spec may serve if others changed the main object at one of these paths.

    The revert alone does not end that. Its rollout may be stuck, while the foreign pods serve. An upstream object
    that has to be recreated for an edit rolls nothing out, so there neither the change nor its revert replaces a pod.
    """
    if not context.provider.edits_recreate and any(_WITHOUT_PODS.match(path) is None for path in paths):
        reported_generation.note_foreign_pods(context.memory(key_of(deployment)).generations)


def note_overwritten(context: Context, kind: Kind, deployment: Object, write_plan: Plan) -> None:
    """Note pods of a foreign spec if the plan overwrites changes that others certainly made."""
    live = context.upstream.objects.get(key_of(deployment))
    if live is not None and write_plan.overwritten:
        # Items of a list of a built-in kind do not name their kind.
        admission, obj = context.memory(key_of(deployment)).admission, whole(kind, live)
        note_pods(context, deployment, certain(admission, obj, live, write_plan.overwritten, context.manager))


def certain(
    admission: Admission, obj: Object, live: Object | None, paths: tuple[str, ...], manager: str
) -> tuple[str, ...]:
    """Return the paths at which others have changed the live object for certain; empty if it may be admission.

    Until this process knows what the API server stored for its apply, a changed field counts only if another manager
    owns it, because fields that admission changes have no owner.

    Args:
        admission: What the API server stored for our applies.
        obj: The object as we applied it, with its record.
        live: The live object, None if there is none.
        paths: The paths at which it differs.
        manager: Our field manager.
    """
    if admission.knows(obj):
        return admission.without_removed(mark(obj), paths)
    is_owned = bool(paths) and live is not None and managed_fields.writer(live, paths, manager) is not None
    return paths if is_owned else ()


def pending(context: Context, write_plan: Plan, admission: Admission) -> str:
    """Return the fields of the plan that others certainly changed, in one clause; empty if there are none."""
    changed: Repairs = []
    for obj, paths in write_plan.repairs:
        is_main = obj is write_plan.main
        live = context.upstream.objects.get(key_of(obj)) if is_main else context.helpers.live(obj)
        if foreign := certain(admission, obj, live, paths, context.manager):
            changed.append((obj, foreign))
    return unreverted(changed)


def unreverted(changed: Repairs) -> str:
    """Return the objects with the fields that others changed, in one clause; empty if there are none."""
    fields = [_fields(obj, paths) for obj, paths in changed]
    return f"others changed {' and '.join(fields)}, which is not reverted yet" if fields else ""


def report_drift(
    context: Context, deployment: Object, obj: Object, paths: tuple[str, ...], writer: str
) -> None:
    """Emit the Event about a change by others that was reverted."""
    note = f"Provider resource was modified directly, reconciling: {_fields(obj, paths)} by {writer}"
    context.recorder.event(deployment, "Warning", "DriftDetected", note)


def _is_refused(context: Context, deployment: Object) -> bool:
    """Check whether our last report is that the API server or admission refused our write."""
    created = LiveModelDeployment(deployment).condition(reasons.RESOURCE_CREATED) or {}
    ours = release.owns_condition(deployment, context.manager, reasons.RESOURCE_CREATED)
    return ours and created.get("reason") == "ApplyRejected"


async def _changed_by_others(context: Context, kind: Kind, write_plan: Plan, deployment: Object) -> Repairs:
    """Return the repairs of the plan without the values that admission would change again.

    If this process has never seen the object, its managed fields may show that nobody has written since our last
    apply. Otherwise a dry run shows what the API server would store today.
    """
    admission = context.memory(key_of(deployment)).admission
    remaining: Repairs = []
    for obj, paths in write_plan.repairs:
        is_main = obj is write_plan.main
        live = context.upstream.objects.get(key_of(obj)) if is_main else context.helpers.live(obj)
        # An object in another version, or without a record, cannot be compared: repair all its paths.
        if live is None or (is_main and write_plan.moved is not None) or manifest.applied(live) is None:
            remaining.append((obj, paths))
            continue
        applied = recorded(obj)
        ignored = foreign_values.paths(context.provider) if is_main else ()
        differences = drift.values(applied, live, ignored)
        is_new = not admission.remembers(mark(obj))  # else a part of our own refused edit may be in force
        if is_new and not admission.knows(obj) and _is_as_stored(live, differences, context.manager):
            # A policy that changed since then must not replace the pods of every model.
            admission.note(obj, live)
        elif not admission.knows(obj):
            obj_kind = kind if is_main else kind_of(obj)
            await apply.preview(
                context.client, obj_kind, obj, live, manager=context.manager, admission=admission
            )
        others = admission.changed_by_others(mark(obj), applied, differences)
        if lost_ownership.PATH in paths:
            others = (*others, lost_ownership.PATH)
        if others:
            remaining.append((obj, others))
    return remaining


def _is_as_stored(live: Object, differences: Mapping[str, Any], manager: str) -> bool:
    """Check whether the differences are values that admission stored in place of ours, because nobody else owns them.

    A removed value leaves no trace, and managed fields without ours have been reset.
    """
    is_removed = any(value is None for value in differences.values())
    is_reset = managed_fields.owned(live, manager) is None
    return not (is_removed or is_reset) and managed_fields.writer(live, tuple(differences), manager) is None


def _limit_message(fields: str) -> str:
    minutes = f"{repairs.WINDOW / 60:.0f} minutes"
    return (
        f"Someone keeps changing {fields}: reverted {repairs.LIMIT} times in {minutes}, now left alone for "
        f"{minutes}; the Events DriftDetected name the field manager"
    )


def _fields(obj: Object, paths: tuple[str, ...]) -> str:
    return f"{first_of(paths)} of {obj['kind']} '{obj['metadata']['name']}'"
