"""One turn of a shim for one ModelDeployment, in the order of contract §4.

Steps 4–14 may end the writing; observing (15) always runs while an upstream object of ours exists.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from pydantic import ValidationError

from kubefoundry_sdk.api import conditions, names, reasons
from kubefoundry_sdk.api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.provider.contract import UnsupportedSchema
from kubefoundry_sdk.provider.reconcile import (
    compatibility,
    deletion,
    drift_repair,
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
)
from kubefoundry_sdk.provider.reconcile.context import Shim, read
from kubefoundry_sdk.provider.reconcile.observation import observe
from kubefoundry_sdk.provider.reconcile.report import Report, Stop, transitions
from kubefoundry_sdk.provider.write import apply, manifest, version_drift
from kubefoundry_sdk.provider.write.plan import pinned, plan
from kubefoundry_sdk.runtime import metrics, status
from kubefoundry_sdk.runtime.store import Key, key_of

log = logging.getLogger(__name__)


async def reconcile(shim: Shim, key: Key) -> float | None:
    """Brings the upstream object and our status fields up to date; seconds until another turn is due, or None."""
    live = shim.deployments.get(key)
    # 1. Gone.
    if live is None:
        shim.forget(key)
        return None
    mine = ((live.get("status") or {}).get("provider") or {}).get("name") == shim.provider.name
    held = finalizer.has(live, shim.provider.name)
    if not mine or live["metadata"].get("deletionTimestamp"):
        shim.verification.forget(key)
        shim.waits.forget(key)

    # Until the upstream kind's objects are known, nothing can be decided: that event comes, but a deletion is due.
    if not shim.upstream.settled:
        shim.refusals.forget(key)
        deleted = live["metadata"].get("deletionTimestamp")
        return await deletion.give_up(shim, live) if deleted and held else None

    # 2. Being deleted. Before pause, and whatever else is wrong.
    if live["metadata"].get("deletionTimestamp"):
        tells = mine or release.told(live, shim.manager)
        return await deletion.terminate(shim, live, tells) if held else None

    # What stands is held, whatever ends the turn.
    standing = shim.upstream.objects.get(key)
    if mine and not held and standing and manifest.made_by(standing, live["metadata"]["uid"], shim.manager):
        await finalizer.restore(shim.client, shim.deployments, live, shim.provider.name)
        live = shim.deployments.get(key) or live

    # 3. Paused.
    if pause.paused(live):
        if mine:
            await pause.hold(shim, live)
        return None

    # 4. Another provider's, or nobody's.
    if not mine:
        return await deletion.let_go(shim, live)

    report = Report(generation=live["metadata"]["generation"])
    retry = await _attempt(shim, live, report)
    if report.stop is not None and report.stop.reason != "DryRun":
        await dry_run.withdraw(shim, key)

    # 15. Observe.
    due = observe(shim, live, report)
    if due is not None:
        retry = due if retry is None else min(retry, due)

    # 16. Tell: the status, and an Event for each transition.
    current = shim.deployments.get(key)
    if current is None or current["metadata"]["uid"] != live["metadata"]["uid"]:
        return None
    if report.stop is None and report.compatible is None:
        # Nothing was found out, and nothing of ours exists: core's words stand.
        return retry
    wanted = report.status(shim.provider)
    if report.observation is None and handover.spoken_for(current, shim.manager):
        wanted = {"conditions": report.conditions()}
    before = current.get("status") or {}
    if await _tell(shim, current, wanted):
        for kind, reason, note in transitions(before, wanted):
            shim.recorder.event(current, kind, reason, note)
    if "phase" in wanted and (written := shim.deployments.get(key)) is not None:
        await foreign_status.unpublish(shim, written, wanted)
    if wanted.get("phase") != "Running":
        await shim.secrets.check(current)
    return retry


async def _tell(shim: Shim, live: Object, wanted: Object) -> bool:
    """Writes the status; of one that is refused an Event is all that can tell."""
    try:
        return await status.write(
            shim.client, shim.deployments, MODEL_DEPLOYMENTS, live, wanted, manager=shim.manager
        )
    except ApiError as error:
        if error.rejected:
            shim.recorder.event(live, "Warning", "StatusRejected", f"The status was refused: {error.message}")
        raise


async def _attempt(shim: Shim, live: Object, report: Report) -> float | None:
    """Steps 5 to 14, and what to tell where they fail; seconds until another turn is due, or None.

    Raises Unreachable: then nothing can be told either.
    """
    key, now = key_of(live), asyncio.get_running_loop().time
    own = names.provider_finalizer(shim.provider.name)
    mark = failures.mark(live, shim.upstream.objects.get(key), shim.upstream.digest, own)
    if standing := shim.failures.standing(key, mark, now()):
        told, left = standing
        if told is not None:
            failures.restored(report, told)
        else:
            retained.as_before(live, report, shim.manager)
        return left
    try:
        retry = await _write(shim, live, report)
    except Unreachable:
        raise
    except Exception as error:
        api = isinstance(error, ApiError)
        stop = failures.stop(shim.provider, error)
        retry = shim.failures.note(key, mark, error, report, stop, now())
        if report.stop is None:
            retained.as_before(live, report, shim.manager)
        metrics.ERRORS.labels(shim.provider.name, "api" if api else "internal").inc()
        log.warning("writing %s/%s failed, again in %.1f s: %s", *key, retry, error, exc_info=not api)
        return retry
    shim.failures.forget(key)
    return retry


async def _write(shim: Shim, live: Object, report: Report) -> float | None:
    """Steps 5 to 14. Fills the report; seconds until another turn is due, or None."""
    generation = live["metadata"]["generation"]
    # 5. Validated for this very generation.
    if not conditions.is_true(
        (live.get("status") or {}).get("conditions"), reasons.VALIDATED, generation=generation
    ):
        retained.unvalidated(live, report, shim.manager)
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
    # 7. Compatible? With the image that serves, if one was chosen earlier.
    upstream = shim.upstream.objects.get(key)
    record = recreate.applied(shim, deployment, upstream)
    deployment = pinned(deployment, record)
    schema = shim.upstream.schema
    known = None if isinstance(schema, UnsupportedSchema) else schema
    found = compatibility.check(shim.provider, deployment, known)
    report.override_warning = found.warning
    if found.problems:
        reason = "InvalidOverrides" if found.invalid_overrides else "Unsupported"
        report.stop = Stop(reasons.PROVIDER_COMPATIBLE, reason, "; ".join(found.problems), failed=True)
        return None
    report.compatible = f"Configuration compatible with {shim.provider.title}"

    # 8. The upstream kind, and how to write it.
    kind = shim.upstream.kind
    if known is None or kind is None:
        report.stop = preconditions.no_schema(shim.provider, schema)
        return None

    # 9. Render.
    rendered = shim.provider.render(deployment, known)
    report.notes.extend(rendered.notes)

    # 10. Whose object is it that stands there?
    if stop := preconditions.standing_there(shim, deployment, [rendered.main]):
        report.stop = stop
        return None
    helpers = shim.helpers.indexed(deployment.uid) if shim.helpers is not None else []
    todo = plan(
        shim.provider,
        deployment,
        known,
        rendered,
        upstream,
        {obj["metadata"]["name"]: obj for obj in helpers},
        record,
        converts=shim.upstream.converts,
    )
    if stop := preconditions.standing_there(shim, deployment, [todo.main, *todo.helpers]):
        report.stop = stop
        return None
    if todo.moved is not None and upstream is not None:
        paths = await version_drift.drifted(
            shim.client, kind, todo.moved, upstream, shim.looks, shim.provider.yielded
        )
        todo = replace(todo, drifted=paths)

    # 11. Dry run.
    if dry_run.asked(live):
        there = {obj["metadata"]["name"] for obj in helpers}
        report.stop, result = await dry_run.run(
            shim.client, kind, todo, upstream is not None, there, manager=shim.manager
        )
        held = finalizer.has(live, shim.provider.name)
        await finalizer.own(
            shim.client, shim.deployments, live, shim.provider.name, hold=held, dry_run_result=result
        )
        return None

    # What one schema refuses another may take.
    digest = f"{shim.upstream.digest} {apply.digest(todo.objects)}"
    if standing := shim.refusals.standing(key, digest, loop.time()):
        report.stop = Stop(reasons.RESOURCE_CREATED, "ApplyRejected", standing[0], failed=True)
        return standing[1]

    try:
        # 6. Another provider holds it: here, because it serves until we can take over.
        if stop := await handover.wait(shim, kind, todo, digest, live, upstream):
            report.stop = stop
            return stop.retry

        # 12. Our finalizer, before anything exists that it must protect.
        await finalizer.own(
            shim.client, shim.deployments, live, shim.provider.name, hold=True, dry_run_result=None
        )
        report.created = f"Created {kind.kind} '{deployment.name}'"
        # 13. Recreate.
        if todo.recreate and upstream is not None:
            report.stop = await recreate.start(shim, kind, todo, upstream)
            return None
        # 14. Apply; or put back what someone has changed.
        if todo.corrections:
            return await drift_repair.put_back(shim, kind, todo, live, report)
        if await apply.write(
            shim.client, kind, shim.upstream.objects, shim.helpers, todo, manager=shim.manager
        ):
            log.info("created %s %s/%s", kind.kind, deployment.namespace, deployment.name)
        if shim.helpers is not None:
            await apply.prune(shim.client, shim.helpers, deployment.uid, todo.helpers)
    except apply.Refused as refused:
        refused.retry = shim.upstream.worth_another_try(refused.retry)
        shim.refusals.remember(key, digest, loop.time(), refused)
        report.stop = Stop(reasons.RESOURCE_CREATED, "ApplyRejected", str(refused), failed=True)
        return refused.retry
    except apply.NameTaken as taken:
        report.stop = preconditions.name_conflict(str(taken))
        return apply.RETRY
    shim.refusals.forget(key)
    return None
