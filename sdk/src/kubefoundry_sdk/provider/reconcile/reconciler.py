"""One reconcile of a ModelDeployment by its provider, in the order of contract §4.

Steps 4 to 14 may stop writing; observing (15) always runs while an upstream object of ours exists.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from pydantic import ValidationError

from kubefoundry_sdk.api import conditions, names, reasons
from kubefoundry_sdk.api.handover import holders
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.cluster.errors import ApiError, Repeated, Unreachable
from kubefoundry_sdk.provider import answers
from kubefoundry_sdk.provider.reconcile import (
    application,
    compatibility,
    deletion,
    dry_run,
    failures,
    finalizer,
    foreign_status,
    handover,
    pause,
    preconditions,
    recreate,
    release,
    retained,
    unlisted,
)
from kubefoundry_sdk.provider.reconcile.context import Context, read
from kubefoundry_sdk.provider.reconcile.observation import observe
from kubefoundry_sdk.provider.reconcile.report import Report, Stop, transitions
from kubefoundry_sdk.provider.upstream_kind import UnsupportedSchema
from kubefoundry_sdk.provider.write import apply, foreign_values, lost_ownership, manifest, version_drift
from kubefoundry_sdk.provider.write.helpers import marked
from kubefoundry_sdk.provider.write.plan import pinned, plan
from kubefoundry_sdk.runtime import metrics
from kubefoundry_sdk.runtime.refusals import Refused
from kubefoundry_sdk.runtime.server_side_apply import NameTaken
from kubefoundry_sdk.runtime.store import Key, key_of
from kubefoundry_sdk.runtime.wait import sooner

log = logging.getLogger(__name__)


async def reconcile(context: Context, key: Key) -> float | None:
    """Brings the upstream object and our status fields up to date; seconds until the next reconcile is due, or
    None."""
    live = context.deployments.get(key)
    # 1. Deleted.
    if live is None:
        context.forget(key)
        return None
    mine = ((live.get("status") or {}).get("provider") or {}).get("name") == context.provider.name
    held = finalizer.has(live, context.provider.name)
    if not mine or live["metadata"].get("deletionTimestamp"):
        context.verification.forget(key)
        if known := context.memories.get(key):
            known.cleanup.over()

    # Nothing can be decided until the upstream kind's objects are listed. That event will come, but a deletion has a
    # deadline.
    if not context.upstream.settled:
        if known := context.memories.get(key):
            known.refusal.over()
        deleted = live["metadata"].get("deletionTimestamp")
        if mine and not deleted:
            await unlisted.report(context, live)
        return await deletion.give_up(context, live) if deleted and held else None

    # 2. Being deleted. Before pause and everything else.
    if live["metadata"].get("deletionTimestamp"):
        reports = mine or release.has_reported(live, context.manager)
        if held:
            return await deletion.terminate(context, live, reports)
        # A provider that still holds it reports.
        if mine and not holders(live):
            await deletion.held_by_others(context, live)
        return None

    # Keep our finalizer while our object exists, whatever ends the reconcile. If that is refused, step 12 reports it.
    again = None
    standing = context.upstream.objects.get(key)
    if (
        mine
        and not held
        and standing
        and manifest.made_by(standing, live["metadata"]["uid"], context.manager)
    ):
        again = await finalizer.restore(context, live)
        live = context.deployments.get(key) or live

    # 3. Paused.
    if pause.paused(live):
        if mine:
            await pause.hold(context, live)
        return again

    # 4. Belongs to another provider, or to none.
    if not mine:
        return await deletion.let_go(context, live)

    report = Report(generation=live["metadata"]["generation"])
    retry = await _attempt(context, live, report)
    if report.stop is not None and report.stop.reason != "DryRun":
        again = sooner(again, await dry_run.withdraw(context, key))

    # 15. Observe.
    retry = sooner(sooner(retry, again), observe(context, live, report))
    unlisted.note(context, report)

    # 16. Report: the status, and an Event for each transition.
    current = context.deployments.get(key)
    if current is None or current["metadata"]["uid"] != live["metadata"]["uid"]:
        return None
    if report.stop is None and report.compatible is None:
        # We know nothing and own nothing: core's report stays.
        return retry
    wanted = report.status(context.provider)
    if report.observation is None and handover.spoken_for(current, context.manager):
        wanted = {"conditions": report.conditions()}
    before = current.get("status") or {}
    if await foreign_status.write(context, current, wanted):
        for kind, reason, note in transitions(before, wanted):
            context.recorder.event(current, kind, reason, note)
    if "phase" in wanted and (written := context.deployments.get(key)) is not None:
        await foreign_status.unpublish(context, written, wanted)
    if wanted.get("phase") != "Running":
        await context.secrets.check(current, context.memory(key).secret)
    return retry


async def _attempt(context: Context, live: Object, report: Report) -> float | None:
    """Steps 5 to 14, and the report if they fail; seconds until the next reconcile is due, or None.

    Raises Unreachable, because then nothing can be reported either.
    """
    key, now = key_of(live), asyncio.get_running_loop().time
    failed = context.memory(key).failures
    own = names.provider_finalizer(context.provider.name)
    upstream = context.upstream.objects.get(key)
    mark = failures.mark(live, upstream, context.upstream.digest, own)
    version = upstream["metadata"]["resourceVersion"] if upstream else ""
    if upstream is not None:
        # The status before the write is what a new one is compared with.
        context.memory(key).generations.acknowledgement.is_processed(upstream, context.manager)
    if standing := failed.standing(mark, version, now()):
        earlier, left = standing
        if earlier is not None:
            failures.restored(report, earlier)
        else:
            retained.as_before(live, report, context.manager)
        return left
    try:
        retry = await _write(context, live, report)
    except Unreachable:
        raise
    except Refused as refused:
        report.stop = Stop(reasons.RESOURCE_CREATED, "ApplyRejected", str(refused), failed=True)
        return refused.retry
    except Exception as error:
        stop = failures.stop(context.provider, error)
        retry = failed.note(mark, version, error, report, stop, now())
        api = isinstance(error, ApiError)
        # A conflict that is not reported: somebody else has written the object meanwhile.
        quicker = isinstance(error, ApiError) and error.conflict and report.stop is None
        quiet = quicker or isinstance(error, Repeated)
        if report.stop is None:
            retained.as_before(live, report, context.manager)
        metrics.ERRORS.labels(context.provider.name, "api" if api else "internal").inc()
        level = logging.DEBUG if quiet else logging.WARNING
        log.log(level, "writing %s/%s failed, retrying in %.1f s: %s", *key, retry, error, exc_info=not api)
        return retry
    failed.over()
    return retry


async def _write(context: Context, live: Object, report: Report) -> float | None:
    """Steps 5 to 14. Fills the report; seconds until the next reconcile is due, or None."""
    generation = live["metadata"]["generation"]
    # 5. Validated for this very generation.
    if not conditions.is_true(
        (live.get("status") or {}).get("conditions"), reasons.VALIDATED, generation=generation
    ):
        retained.unvalidated(live, report, context.manager)
        return None
    try:
        deployment = read(live)
    except ValidationError as error:
        report.stop = Stop(
            reasons.PROVIDER_COMPATIBLE, "Unsupported", f"The spec cannot be read: {error}", failed=True
        )
        return None

    loop = asyncio.get_running_loop()
    key = (deployment.namespace, deployment.name)
    memory = context.memory(key)
    # 7. Compatible? Checked with the image that serves, if one was chosen earlier.
    upstream = context.upstream.objects.get(key)
    record = recreate.applied(context, deployment, upstream)
    deployment = pinned(deployment, record)
    schema = context.upstream.schema
    known = None if isinstance(schema, UnsupportedSchema) else schema
    found = compatibility.check(context.provider, deployment, known)
    report.override_warning = found.warning
    if found.problems:
        reason = "InvalidOverrides" if found.invalid_overrides else "Unsupported"
        report.stop = Stop(reasons.PROVIDER_COMPATIBLE, reason, "; ".join(found.problems), failed=True)
        return None
    report.compatible = release.compatible_words(context.provider)

    # 8. The upstream kind, and how to write it.
    kind = context.upstream.kind
    if known is None or kind is None:
        report.stop = preconditions.no_schema(context.provider, schema)
        return None

    # 9. Render.
    rendered = answers.render(context.provider, deployment, known)
    report.notes.extend(rendered.notes)

    # 10. Who owns the object that is there?
    if stop := preconditions.standing_there(context, deployment, [rendered.main]):
        report.stop = stop
        return None
    helpers = preconditions.helpers(context, deployment, upstream)
    todo = plan(
        context.provider,
        deployment,
        known,
        rendered,
        upstream,
        helpers,
        record,
        converts=context.upstream.converts,
        admission=memory.admission,
    )
    if stop := preconditions.standing_there(context, deployment, [todo.main, *todo.helpers]):
        report.stop = stop
        return None
    if todo.moved is not None and upstream is not None:
        paths = await version_drift.drifted(
            context.client,
            kind,
            todo.moved,
            upstream,
            memory.last_look,
            foreign_values.paths(context.provider),
        )
        todo = replace(todo, drifted=paths)
    todo = lost_ownership.repaired(todo, upstream, helpers, context.manager)

    # 11. Dry run.
    if dry_run.asked(live):
        finalizer.check(context, live)
        there = set(marked(helpers))
        report.stop, result = await dry_run.run(
            context.client, kind, todo, upstream is not None, there, manager=context.manager
        )
        held = finalizer.has(live, context.provider.name)
        await finalizer.own(context, live, hold=held, dry_run_result=result)
        return None

    # One schema may accept what another refused.
    digest = f"{context.upstream.digest} {apply.digest(todo.objects)}"
    if standing := memory.refusal.standing(digest, loop.time()):
        return retained.refused(context, live, report, standing)

    try:
        # 6. Another provider holds it. Checked here, because it serves until we can take over.
        if stop := await handover.wait(context, kind, todo, digest, live, upstream):
            report.stop = stop
            return stop.retry

        # 12. Our finalizer, before anything exists that it must protect.
        await finalizer.own(context, live, hold=True, dry_run_result=None)
        # 13. Recreate.
        if todo.recreate and upstream is not None:
            report.stop = await recreate.start(context, kind, todo, upstream)
            return None
        # 14. Apply, or revert what someone has changed.
        again = await application.write(context, kind, todo, live, report)
    except Refused as refused:
        refused.retry = context.upstream.worth_another_try(refused.retry)
        standing = memory.refusal.remember(digest, loop.time(), refused)
        return retained.refused(context, live, report, standing)
    except NameTaken as taken:
        report.stop = preconditions.name_conflict(str(taken))
        # Nobody tells us when an object that is not ours is gone.
        return preconditions.TAKEN
    memory.refusal.over()
    # None: everything is applied, and nothing was left alone.
    report.applied = again is None
    return again
