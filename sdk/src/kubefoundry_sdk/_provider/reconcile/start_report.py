"""Reports a model's start with the status writes that happen anyway (contract §3, start)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from prometheus_client import Histogram

from kubefoundry_sdk._api import managed_fields, reasons
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider.reconcile import start
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.memory import Starts
from kubefoundry_sdk._provider.reconcile.report import Report
from kubefoundry_sdk._runtime import status
from kubefoundry_sdk._runtime.store import key_of

STEP_SECONDS: Final = Histogram(
    "kubefoundry_modeldeployment_start_step_seconds",
    "Seconds that the slowest pod of a model took for each step of its start.",
    ["provider", "step"],
    buckets=(1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600),
)


def current(context: Context, live: Object, report: Report) -> Mapping[str, Any] | None:
    """Return the start to report as `status.start`, or None if there is no start to report."""
    seen, upstream = report.observation, report.live
    if seen is None or upstream is None or upstream["metadata"].get("deletionTimestamp"):
        return None
    starts, applied = (
        context.memory(key_of(live)).starts,
        managed_fields.applied_at(upstream, context.manager),
    )
    is_serving = seen.phase == "Running"
    serves_newest = is_serving and report.seen_generation is None
    kept = _complete(own(live, context.manager)) if is_serving else None
    if applied not in (starts.begun, starts.served):
        if _has_served(starts, live, applied, context.manager, is_serving=is_serving):
            starts.served = applied
        else:
            starts.begin(applied)
    if starts.served == applied or seen.reason == "ScaledToZero" or is_serving != serves_newest:
        return kept
    if serves_newest:
        starts.ended = starts.ended or context.now()
    elif starts.ended is not None:
        # An outage: no apply of ours starts the pods that follow.
        starts.served = applied
        return None
    decided = _decide(context, upstream, applied, starts.ended)
    return decided.status if decided else kept


def _has_served(starts: Starts, live: Object, applied: str | None, manager: str, *, is_serving: bool) -> bool:
    """Check whether the model has served since the last apply, before this process looked.

    Its pods may be replaced at any time, and such a pod is not started by the apply. If it is unknown, assume that it
    has served, because no start is better than an untrue one.
    """
    model = LiveModelDeployment(live)
    ready = model.condition(reasons.READY) or {}
    was_ready = model.is_true(reasons.READY, generation=model.generation)
    if starts != Starts():
        # This process has just sent the apply. A repair of drift does not begin a start while the model serves.
        return was_ready and is_serving
    reported = own(live, manager)
    if was_ready or (reported and not start.is_complete(reported)):
        return was_ready
    changed, began = start.instant(ready.get("lastTransitionTime")), start.instant(applied)
    if changed is None or began is None or changed <= began:
        return False
    # The first report of a new object comes after the apply, with both conditions at once.
    created = model.condition(reasons.RESOURCE_CREATED) or {}
    return bool(created.get("lastTransitionTime") != ready["lastTransitionTime"])


def _decide(
    context: Context, upstream: Object, applied: str | None, ended: datetime | None
) -> start.Start | None:
    began = start.instant(applied)
    if context.pods is None or not context.pods.is_listed or began is None:
        return None
    # Steps after the end belong to pods that are replaced or flap while the model serves.
    pods = start.alive(context.pods.of(upstream))
    return start.decide(pods, began, ended or context.now(), is_serving=ended is not None)


def _complete(reported: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return reported if reported and start.is_complete(reported) else None


def own(live: Object, manager: str) -> Mapping[str, Any] | None:
    """Return the `status.start` that we applied, None if there is none or somebody else has changed it."""
    fields = (managed_fields.owned(live, manager, "status") or {}).get("f:status", {})
    return LiveModelDeployment(live).status.get("start") if "f:start" in fields else None


def riding(live: Object, desired: Mapping[str, Any], manager: str) -> Mapping[str, Any]:
    """Return the status to apply: with the start that is there already, if only the start differs.

    A start is no reason for a write. A start of somebody else is corrected.
    """
    present = LiveModelDeployment(live).status.get("start")
    if "phase" not in desired or present != own(live, manager):
        return desired
    unchanged = {name: value for name, value in desired.items() if name != "start"}
    if present is not None:
        unchanged["start"] = present
    return unchanged if status.same(live, status.prepared(live, unchanged), manager) else desired


def note_written(context: Context, before: Object, written: Mapping[str, Any]) -> None:
    """Measure the start that a write of the status has completed.

    Args:
        context: The provider's context.
        before: The ModelDeployment before the write.
        written: The status.
    """
    starts, reported = context.memory(key_of(before)).starts, written.get("start") or {}
    is_open = starts.begun is not None and starts.begun != starts.served
    is_newest = written.get("observedGeneration") == LiveModelDeployment(before).generation
    is_serving = written.get("phase") == "Running" and is_newest
    if not is_open or not is_serving or not start.is_complete(reported):
        return
    starts.served = starts.begun
    if reported != own(before, context.manager):
        for step in reported["steps"]:
            STEP_SECONDS.labels(context.provider.name, step["name"]).observe(step["seconds"])
