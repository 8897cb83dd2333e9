"""Reverts what others have changed on upstream objects, and backs off if they keep changing it (contract §4.14)."""

from __future__ import annotations

import asyncio

from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.provider.reconcile.context import Context
from kubefoundry_sdk.provider.reconcile.report import Report
from kubefoundry_sdk.provider.write import apply
from kubefoundry_sdk.provider.write.helpers import kind_of
from kubefoundry_sdk.provider.write.plan import Plan
from kubefoundry_sdk.runtime import repairs
from kubefoundry_sdk.runtime.store import key_of

SHOWN = 5
"""The most fields that a message names."""


async def put_back(
    context: Context, kind: Kind, todo: Plan, deployment: Object, report: Report
) -> float | None:
    """Applies the objects of the plan again, with an Event that names the fields and the manager that changed them.

    After `repairs.LIMIT` times it reports that, once, and changes nothing. Then returns the seconds until the next
    attempt, else None. Raises as `apply.write`.
    """
    done = context.memory(key_of(deployment)).repairs
    now = asyncio.get_running_loop().time()
    if wait := done.wait(now):
        report.created = _left_alone(todo)
        context.recorder.event(deployment, "Warning", "DriftDetected", report.created)
        return wait
    for obj, paths in todo.repairs:
        main = obj is todo.main
        addressed = kind if main else kind_of(obj)
        store = context.upstream.objects if main else context.helpers.store(obj)
        # Read it first: the apply makes the fields ours.
        writer = await apply.last_writer(context.client, addressed, obj, paths, manager=context.manager)
        await apply.put_back(context.client, addressed, store, obj, manager=context.manager)
        note = f"Provider resource was modified directly, reconciling: {_fields(obj, paths)} by {writer}"
        context.recorder.event(deployment, "Warning", "DriftDetected", note)
    done.note(now)
    return None


def _left_alone(todo: Plan) -> str:
    changed = " and ".join(_fields(obj, paths) for obj, paths in todo.repairs)
    minutes = f"{repairs.WINDOW / 60:.0f} minutes"
    return (
        f"Someone keeps changing {changed}: reverted {repairs.LIMIT} times in {minutes}, now left alone for "
        f"{minutes}; the Events DriftDetected name the field manager"
    )


def _fields(obj: Object, paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else ""
    return f"{', '.join(paths[:SHOWN])}{more} of {obj['kind']} '{obj['metadata']['name']}'"
