"""The steps that prepare and do the writes upstream (contract §4.8 to §4.19). Each docstring is the contract's text.

An error in one of them is reported (`write_errors`). The steps that observe and report follow in any case.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pydantic import ValidationError

from kubefoundry_sdk._api import reasons
from kubefoundry_sdk._api.engine_choice import effective_engine, problem_with, with_engine
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.reconcile import (
    application,
    collection,
    compatibility,
    drift_repair,
    dry_run,
    finalizer,
    handover,
    lost_record,
    preconditions,
    recreate,
    release,
    retained,
    selected_engine,
)
from kubefoundry_sdk._provider.reconcile.compatibility import Compatibility
from kubefoundry_sdk._provider.reconcile.context import read
from kubefoundry_sdk._provider.reconcile.report import Stop
from kubefoundry_sdk._provider.reconcile.turn import End, Turn
from kubefoundry_sdk._provider.upstream_kind import Schema, UnsupportedSchema
from kubefoundry_sdk._provider.write import apply, foreign_values, lost_ownership, version_drift
from kubefoundry_sdk._provider.write.earlier_render import pinned
from kubefoundry_sdk._provider.write.helpers import kind_of, marked
from kubefoundry_sdk._provider.write.plan import Plan, plan


async def require_validation(turn: Turn) -> End | None:
    """8. Stop if `Validated` is not True for this generation, or no engine is selected yet."""
    if not LiveModelDeployment(turn.live).is_true(reasons.VALIDATED, generation=turn.report.generation):
        lost = retained.lost_statements(turn.context, turn.live)
        retained.report_unvalidated(turn.live, turn.report, turn.context.manager, lost)
        return End()
    try:
        turn.deployment = read(turn.live)
    except ValidationError as error:
        # A newer release of core may accept a field or value that this provider does not know.
        message = f"The spec cannot be read: {error}"
        return turn.stop(Stop(reasons.PROVIDER_COMPATIBLE, "Unsupported", message, failed=True))
    return None if LiveModelDeployment(turn.live).requested_engine else _use_selected_engine(turn)


def _use_selected_engine(turn: Turn) -> End | None:
    provider = turn.context.provider
    record = recreate.applied(turn.context, turn.deployment, turn.upstream, turn.last_record)
    memory = turn.memory
    restored = selected_engine.restored(turn.context, turn.deployment, turn.upstream)
    engine = turn.report.engine = restored or selected_engine.published(
        turn.live, provider, record, is_returned=memory.is_returned
    )
    memory.is_returned = memory.is_returned and effective_engine(turn.live) != engine
    spec = turn.live.get("spec") or {}
    problem = problem_with(spec, engine) if engine else ""
    if stop := selected_engine.obstacle(turn.live, provider, engine, problem):
        return turn.stop(stop)
    if engine is None or problem:
        # Core or the selector selects an engine, because no provider has created anything yet.
        return End()
    if turn.deployment.spec.engine.type != engine:
        turn.deployment = read({**turn.live, "spec": with_engine(spec, engine)})
    return None


async def check_compatibility(turn: Turn) -> End | None:
    """9. Check capabilities, overrides, and the provider's own restrictions."""
    context, report = turn.context, turn.report
    # Checked with the image that serves, if one was chosen earlier.
    turn.record = recreate.applied(context, turn.deployment, turn.upstream, turn.last_record)
    turn.deployment = pinned(turn.deployment, turn.record)
    schema = _supported_schema(turn)

    def check() -> tuple[Provider, Compatibility]:
        provider = compatibility.as_written(
            context.provider, turn.deployment, schema, turn.record, turn.upstream
        )
        return provider, compatibility.check(provider, turn.deployment, schema)

    turn.provider, result = await context.call(check)
    report.override_warning = result.warning
    if result.problems:
        reason = "InvalidOverrides" if result.invalid_overrides else "Unsupported"
        message = "; ".join(result.problems)
        return turn.stop(Stop(reasons.PROVIDER_COMPATIBLE, reason, message, failed=True))
    report.compatible = release.compatible_message(context.provider)
    return None


async def require_crd(turn: Turn) -> End | None:
    """10. Determine the installed upstream by the fields of its CRD.

    Report a missing or unsupported CRD in a condition, and check again when the CRD changes.
    """
    context = turn.context
    schema, kind = _supported_schema(turn), context.upstream.kind
    if schema is None or kind is None:
        return turn.stop(preconditions.no_schema(context.provider, context.upstream.schema))
    turn.schema, turn.kind = schema, kind
    return None


def _supported_schema(turn: Turn) -> Schema | None:
    schema = turn.context.upstream.schema
    return None if isinstance(schema, UnsupportedSchema) else schema


async def render(turn: Turn) -> End | None:
    """11. Render the upstream objects."""
    context = turn.context
    turn.rendered = await context.call(partial(results.render, turn.provider, turn.deployment, turn.schema))
    turn.report.notes.extend(turn.rendered.notes)
    return None


async def check_ownership(turn: Turn) -> End | None:
    """12. Report `NameConflict` if an object of that name was not created for this ModelDeployment.

    That object stays unchanged. If this process has applied the object, or has seen it unchanged, it recognizes the
    uid and restores owner, labels and annotations. After a restart nothing proves that the object is ours, because
    anybody may use our field manager. The message then has the annotation with which a user gives the object back. A
    restored object is adopted instead (see [below](#7-annotations-labels-finalizers)). An object that an earlier
    ModelDeployment of this name has left is deleted after 30 seconds, if the garbage collector has not deleted it.
    """
    # Check before the plan, which would treat another owner's object as an earlier state of ours.
    stop = preconditions.find_conflict(
        turn.context, turn.deployment, turn.rendered.main, turn.upstream, is_main=True
    )
    if stop is None:
        return None
    return turn.stop(await collection.collect(turn, turn.kind, turn.upstream, stop))


async def plan_changes(turn: Turn) -> End | None:
    """13. Compare the rendered objects with the live ones and with the record of the last apply.

    The plan has the objects to write, and the changes by others. Report `NameConflict` if a helper's name is taken.
    """
    context, deployment, upstream = turn.context, turn.deployment, turn.upstream
    turn.helpers = preconditions.helpers(context, deployment, upstream)

    # The plan renders earlier specs, too.
    def decide() -> tuple[Plan, str]:
        decision = plan(
            turn.provider,
            deployment,
            turn.schema,
            turn.rendered,
            upstream,
            turn.helpers,
            turn.record,
            converts=context.upstream.converts,
            admission=turn.memory.admission,
            last_record=turn.last_record,
        )
        note = compatibility.waiting_note(context.provider, deployment, turn.schema, decision.main)
        return decision, note

    turn.plan, sentence = await context.call(decide)
    if sentence:
        turn.report.notes.append(sentence)
    # Only the plan has the names of the helpers that are named after their content.
    for helper in turn.plan.helpers:
        live = context.helpers.live(helper)
        if stop := preconditions.find_conflict(context, deployment, helper, live, is_main=False):
            return turn.stop(await collection.collect(turn, kind_of(helper), live, stop))
    turn.memory.collection.reset()
    if turn.plan.moved is not None and upstream is not None:
        ignored = foreign_values.paths(context.provider)
        paths = await version_drift.drifted(
            context.client, turn.kind, turn.plan.moved, upstream, turn.memory.last_comparison, ignored
        )
        turn.plan = replace(turn.plan, drifted=paths)
    turn.plan = lost_ownership.with_repairs(turn.plan, upstream, turn.helpers, context.manager)
    turn.memory.drift = drift_repair.pending(context, turn.plan, turn.memory.admission)
    return None


async def try_dry_run(turn: Turn) -> End | None:
    """14. Send a dry run and stop, if the user requests one."""
    context, live = turn.context, turn.live
    if not dry_run.is_requested(live):
        return None
    finalizer.check(context, live)
    stop, result = await dry_run.run(
        context.client,
        turn.kind,
        turn.plan,
        turn.upstream,
        marked(turn.helpers),
        manager=context.manager,
    )
    has_finalizer = finalizer.has(live, context.provider.name)
    await finalizer.own(context, live, hold=has_finalizer, dry_run_result=result)
    return turn.stop(stop)


async def wait_after_refusal(turn: Turn) -> End | None:
    """15. Stop if the API server has rejected the same objects and their retry is not due.

    Repeat the report.
    """
    # The digest includes the CRD's, because a new schema may accept the objects.
    turn.digest = f"{turn.context.upstream.digest} {apply.digest(turn.plan.objects)}"
    refusal = turn.memory.refusal.pending(turn.digest, turn.now)
    if refusal is None:
        return None
    return End(retained.refused(turn.context, turn.live, turn.report, refusal))


async def take_over(turn: Turn) -> End | None:
    """16. Apply the objects in a dry run while another provider still holds its finalizer.

    `WaitingForCleanup` means that the API server accepted all of them. Wait for at most five minutes. Do not wait for
    a finalizer that another field manager added, if its provider has never written to the ModelDeployment.
    """
    # This step follows the checks above, because the other provider serves until we report that we can take over.
    stop = await handover.wait(turn.context, turn.kind, turn.plan, turn.digest, turn.live, turn.upstream)
    return turn.stop(stop) if stop else None


async def add_finalizer(turn: Turn) -> End | None:
    """17. Add our finalizer.

    If it is refused, or accepted and not stored, nothing is created (`ApplyRejected`).
    """
    # Add the finalizer before any object exists. The same write removes an earlier dry-run result.
    await finalizer.own(turn.context, turn.live, hold=True, dry_run_result=None)
    return None


async def start_recreation(turn: Turn) -> End | None:
    """18. Recreate the upstream object if the upstream cannot make the change in place (`Recreating`).

    Try the new object in a dry run, delete the old one, and create the new one once the old one is gone.
    """
    if not turn.plan.recreate or turn.upstream is None:
        return None
    return turn.stop(await recreate.start(turn.context, turn.kind, turn.plan, turn.upstream))


async def apply_plan(turn: Turn) -> End | None:
    """19. Apply the plan.

    Revert changes by others (Event `DriftDetected`), at most five times in ten minutes. An object whose
    `managedFields` no longer name the provider as an owner of content counts as changed. Values that admission
    changes are named in `ResourceCreated` and `Ready`, and left as they are. A value that it removes, or takes back
    from an edit, is a refusal. Delete helpers that are no longer rendered.
    """
    if turn.upstream is not None and lost_record.is_lost(
        turn.live,
        turn.upstream,
        turn.last_record.of(turn.upstream),
        turn.plan.main,
        turn.memory.admission,
        turn.context.manager,
    ):
        # Do this before the write. If admission removes the new record, too, the next write has no record to use.
        turn.memory.unchecked = str(turn.upstream["metadata"]["uid"])
    retry = await application.write(turn.context, turn.kind, turn.plan, turn.live, turn.report)
    turn.memory.refusal.reset()
    turn.memory.drift = ""
    # If no retry is due, everything is applied, including the fields that others had changed.
    turn.report.applied = retry is None
    return End(retry)
