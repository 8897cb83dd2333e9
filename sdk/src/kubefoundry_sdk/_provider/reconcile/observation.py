"""Step 20: observe what exists upstream, even if the reconcile stopped writing (contract §4)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from pydantic import ValidationError

from kubefoundry_sdk._api import conditions, reasons
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._cluster.logs import described
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.contract import Deployment, Endpoint, Observation, Replicas
from kubefoundry_sdk._provider.health import pod_causes, staleness
from kubefoundry_sdk._provider.reconcile import (
    drift_repair,
    lost_record,
    release,
    reported_generation,
    selected_engine,
    start_report,
    unmarked,
)
from kubefoundry_sdk._provider.reconcile.context import Context, read
from kubefoundry_sdk._provider.reconcile.report import UNREAD, Report
from kubefoundry_sdk._provider.write import (
    additions,
    drift,
    foreign_values,
    manifest,
    server_values,
    shared_entries,
)
from kubefoundry_sdk._provider.write.helpers import whole
from kubefoundry_sdk._provider.write.manifest import LastRecord, Record
from kubefoundry_sdk._runtime.store import Key, key_of

log = logging.getLogger(__name__)


AGAIN: Final = 300.0
"""Seconds until an object that could not be read is read again without an event."""

UNWATCHED: Final = 10.0
"""Seconds until an object that is not watched is read again."""


async def observe(
    context: Context, live: Object, report: Report, last_record: LastRecord | None = None
) -> float | None:
    """Add the observation to the report. Return the seconds until the next is due without an event, or None.

    Args:
        context: The provider's context.
        live: The ModelDeployment.
        report: The report.
        last_record: Reads the record of the upstream object; None to unpack it here.
    """
    try:
        due = await _observe(context, live, report, last_record or LastRecord())
    except Exception as error:
        log.exception("the status of the upstream object cannot be read")
        _not_read(context, live, report, described(error))
        report.start = start_report.own(live, context.manager)
        return AGAIN
    if report.observation is None:
        reported_generation.forget_serving(context.memory(key_of(live)).generations)
    report.start = start_report.current(context, live, report)
    return due


def _not_read(context: Context, live: Object, report: Report, error_text: str) -> None:
    """Report the last status that was read, because a read error does not mean that the model stopped serving."""
    before = LiveModelDeployment(live).status
    counts, endpoint = before.get("replicas") or {}, before.get("endpoint") or {}
    description = f"{context.provider.upstream.kind} '{live['metadata']['name']}'"
    message = f"Provider {context.provider.name} cannot read the status of {description}: {error_text}"
    phase: Any = before.get("phase")
    ready = conditions.find(before.get("conditions"), reasons.READY) or {}
    is_kept = phase in ("Pending", "Failed") or (
        phase == "Running" and ("service" in endpoint or "url" in endpoint)
    )
    report.observation = Observation(
        phase=phase if is_kept else "Deploying",
        reason=ready.get("reason", "Unknown") if is_kept else "Unknown",
        message=f"{message}; showing the last status that was read" if is_kept else message,
        replicas=Replicas(*(counts.get(name, 0) for name in ("desired", "ready", "available"))),
        endpoint=_published(endpoint),
    )
    report.stale, report.stale_reason = message, UNREAD
    if phase == "Running":
        # The last status that was read is not about a newer generation.
        report.seen_generation = min(report.generation, reported_generation.reported(before))


def _published(endpoint: Mapping[str, Any]) -> Endpoint:
    """Return `status.endpoint`."""
    strings = {name: endpoint.get(name, "") for name in ("service", "url", "model")}
    return Endpoint(port=endpoint.get("port", 0), apis=tuple(endpoint.get("apis") or ()), **strings)


async def _observe(context: Context, live: Object, report: Report, last_record: LastRecord) -> float | None:
    meta = live["metadata"]
    key = (meta["namespace"], meta["name"])
    upstream = context.upstream.objects.get(key)
    admission = context.memory(key).admission
    is_watched = upstream is not None
    if upstream is None and report.stop is not None:
        upstream = await _read_unwatched(context, live)
    if upstream is None or not (
        manifest.is_owned_by(upstream, meta["uid"])
        # The object has lost its marks, because somebody keeps removing them.
        or admission.recognizes((context.provider.upstream.kind, meta["name"]), upstream)
    ):
        context.verification.forget(key)
        return None
    if context.upstream.kind:
        upstream = whole(context.upstream.kind, upstream)
    record = last_record.of(upstream)
    deployment = as_applied(live, record)
    if deployment is None:
        return None
    report.live = upstream
    if report.engine is None:
        is_returned = context.memory(key).is_returned
        report.engine = selected_engine.published(live, context.provider, record, is_returned=is_returned)
    read_now = await context.call(partial(results.observe, context.provider, deployment, upstream))
    uid = upstream["metadata"]["uid"]
    seen, unclear = context.memory(key).steadiness.keep(uid, read_now, context.clock())
    report.observation = seen
    due = None
    if upstream["metadata"].get("deletionTimestamp"):
        # an object that is being deleted serves to its end
        report.endpoint = LiveModelDeployment(live).status.get("endpoint")
    else:
        due = _explain(context, key, upstream, report)
        report.altered = context.memory(key).altered
        report.unchecked = lost_record.clause(live, upstream, context.memory(key))
        if record is not None:
            if report.stop is not None or report.is_repeated:
                differing = _differing(context, key, upstream, record)
                report.is_mixed = bool(differing)
                report.unreverted = _unreverted(context, key, upstream, differing)
            _name_additions(context, live, upstream, record, report)
    due = _soonest(due, _hold_back(context, live, upstream, report))
    _verify(context, live, deployment, report)
    serves = seen.phase == "Running" and report.seen_generation is None
    verdict = staleness.judge(
        context.memory(key).silence,
        upstream,
        phase=seen.phase,
        was_stale=reported_stale(live, context.manager),
        down=context.operator.down if context.operator else None,
        threshold=context.stale_after,
        now=context.clock(),
        names_generation=context.upstream.names_generation and not serves,
    )
    report.stale = verdict.message
    return _soonest(due, verdict.retry, unclear, None if is_watched else UNWATCHED)


async def _read_unwatched(context: Context, live: Object) -> Object | None:
    """Return our object from the API server if admission removed the labels by which we watch it.

    A new process does not remember such an object, but our last report names it.
    """
    key, kind = key_of(live), context.upstream.kind
    if kind is None or not kind.built_in:
        return None
    is_reported = release.has_reported(live, context.manager) and bool(
        LiveModelDeployment(live).provider.get("resourceName")
    )
    if not is_reported and not context.memory(key).admission.remembers((kind.kind, key[1])):
        return None
    return await unmarked.read(context, kind, key)


def _differing(context: Context, key: Key, upstream: Object, record: Record) -> tuple[str, ...]:
    """Return the paths at which the upstream object differs from its record.

    Values that others own, or that admission changes, do not count. Any other difference means that a part of a
    refused edit is in force, or that others changed the object. Then no version of the spec serves as a whole.
    """
    if record.manifest.get("apiVersion") != upstream["apiVersion"]:
        # Only the webhook that converts between the versions can compare them.
        return ()
    content = {**record.manifest, "metadata": {}}
    differences = drift.values(content, upstream, foreign_values.paths(context.provider))
    admission = context.memory(key).admission
    return admission.changed_by_others((upstream["kind"], key[1]), record.manifest, differences)


def _unreverted(context: Context, key: Key, upstream: Object, differing: tuple[str, ...]) -> str:
    """Return one clause about the changes by others that cannot be reverted until the obstacle is gone.

    The last plan lists them. If the obstacle came before any plan, the object is compared with its record.
    """
    memory = context.memory(key)
    foreign = drift_repair.certain(memory.admission, upstream, upstream, differing, context.manager)
    if memory.drift or not foreign:
        return memory.drift
    return drift_repair.unreverted([(upstream, foreign)])


def _name_additions(context: Context, live: Object, upstream: Object, record: Record, report: Report) -> None:
    """Add the fields of others on the main object and the helpers to the report.

    Emit an Event if neither the status nor an earlier Event names them.
    """
    others = (*foreign_values.paths(context.provider), *shared_entries.paths(context.provider, upstream))
    foreign_fields = additions.added(record.manifest, upstream, context.manager, others)
    description = f"{context.provider.upstream.kind} '{upstream['metadata']['name']}'"
    helpers = list(_helper_additions(context, live))
    texts = [additions.text(description, foreign_fields), *(text for text, _ in helpers)]
    report.additions = additions.together(texts)
    redirected = next((why for _, why in helpers if why), "")
    report.replaced = additions.replacing(description, foreign_fields) or redirected
    memory = context.memory(key_of(live))
    before = str(LiveModelDeployment(live).status.get("message"))
    if report.additions != memory.additions and not before.endswith(report.additions):
        context.recorder.event(live, "Warning", "DriftDetected", report.additions)
    memory.additions = report.additions


def _helper_additions(context: Context, live: Object) -> Iterator[tuple[str, str]]:
    """Yield for each helper a clause about the fields that others added, and why clients reach no pod."""
    meta = live["metadata"]
    for helper in context.helpers.of(meta["namespace"], meta["uid"]):
        record = manifest.applied(helper)
        if record is None:
            continue
        allocated = server_values.ALLOCATED.get(helper["kind"], ())
        foreign_fields = additions.added(record.manifest, helper, context.manager, allocated)
        description = f"{helper['kind']} '{helper['metadata']['name']}'"
        yield (
            additions.text(description, foreign_fields),
            additions.redirecting(description, record.manifest, helper),
        )


def reported_stale(live: Object, manager: str) -> bool:
    """Check whether that manager has reported `StaleStatus`. A report of another manager is no evidence."""
    reported = LiveModelDeployment(live).is_true(reasons.STALE_STATUS)
    return reported and release.owns_condition(live, manager, reasons.STALE_STATUS)


def as_applied(live: Object, record: Record | None) -> Deployment | None:
    """Return the deployment as it was applied, because a newer spec may have been refused.

    Return the current deployment if no readable record exists, and None if neither can be read.
    """
    for obj in ({**live, "spec": record.spec}, live) if record else (live,):
        try:
            return read(obj)
        except ValidationError:
            continue
    return None


def _soonest(*waits: float | None) -> float | None:
    return min((wait for wait in waits if wait is not None), default=None)


def _hold_back(context: Context, live: Object, upstream: Object, report: Report) -> float | None:
    """Report an earlier generation while the pods of that generation serve.

    Return the seconds until this may change, or None.
    """
    seen = report.observation
    generations = context.memory(key_of(live)).generations
    if seen is None or seen.phase != "Running":
        reported_generation.note_idle(generations, upstream)
        return None
    if report.applied:
        reported_generation.note_applied(generations, report, upstream)
    now = asyncio.get_running_loop().time()
    snapshot = reported_generation.Snapshot(
        live,
        upstream,
        report,
        seen,
        context.provider,
        context.manager,
        now,
        context.upstream.names_generation,
    )
    holdback = reported_generation.judge(generations, snapshot)
    if holdback is None:
        generations.endpoint = seen.endpoint
        return None
    report.seen_generation, report.held_back = holdback.generation, holdback.why
    # The serving pods have the name and the APIs of the generation that they were created for.
    served = generations.endpoint or _published(LiveModelDeployment(live).status.get("endpoint") or {})
    if not holdback.generation:
        served = Endpoint()
    endpoint = replace(seen.endpoint, model=served.model, apis=served.apis)
    report.observation = replace(seen, endpoint=endpoint)
    return holdback.left


def _explain(context: Context, key: Key, upstream: Object, report: Report) -> float | None:
    """Add the cause that the pods show to the observation.

    Return the seconds until the cause may end, or until another cause may have to be reported.
    """
    now = context.now()
    pods = context.pods.of(upstream) if context.pods else []
    overdue, due = context.memory(key).pod_creations.overdue(pods, context.clock())
    why = pod_causes.cause(pods, now, overdue)
    if (why is None or why.past) and context.creations is not None:
        # A finished pod does not show that its controller may create another pod.
        alive = [pod for pod in pods if not pod_causes.is_finished(pod)]
        why = context.creations.cause(upstream, alive) or why
    if context.quotas is not None and (why is None or why.rank >= pod_causes.UNSCHEDULED):
        why = context.quotas.cause(upstream, pods) or why
    if why is None or report.observation is None:
        return due
    report.observation = pod_causes.explain(report.observation, why, context.provider.title)
    return _soonest(due, (why.until - now).total_seconds() if why.until else None)


def _verify(context: Context, live: Object, deployment: Deployment, report: Report) -> None:
    """Replace Running by Deploying if the endpoint has to be verified and is not."""
    seen, upstream = report.observation, report.live
    if (
        seen is None
        or upstream is None
        or seen.phase != "Running"
        or not context.verification.is_requested(live)
    ):
        context.verification.forget((deployment.namespace, deployment.name))
        return
    problem = context.verification.verdict(deployment, upstream, seen.endpoint)
    if note := context.verification.note((deployment.namespace, deployment.name)):
        report.observation = replace(seen, message=f"{seen.message}; {note}")
    if problem:
        reporter = context.provider.upstream.reporter(context.provider.title)
        message = f"{reporter} reports the model as ready, but {problem}"
        report.observation = replace(
            seen,
            phase="Deploying",
            reason="EndpointUnverified",
            message=message,
            replicas=replace(seen.replicas, available=0),
        )
