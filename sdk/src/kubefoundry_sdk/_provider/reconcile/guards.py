"""The steps before the writes upstream (contract §4.1 to §4.7). Each docstring is the contract's text."""

from __future__ import annotations

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.handover import holders, in_charge
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider.reconcile import (
    deletion,
    failures,
    finalizer,
    pause,
    release,
    retained,
    unlisted,
)
from kubefoundry_sdk._provider.reconcile.turn import End, Turn
from kubefoundry_sdk._provider.write import manifest


async def forget_missing(turn: Turn) -> End | None:
    """1. Stop if the ModelDeployment no longer exists."""
    if not turn.exists:
        turn.context.forget(turn.key)
        return End(reports=False)
    if not turn.is_ours or turn.is_deleted:
        # If it becomes ours again, its new endpoint has to be verified, and the other provider has the full time-out
        # to clean up.
        turn.context.verification.forget(turn.key)
        if memory := turn.context.memories.get(turn.key):
            memory.cleanup.reset()
    return None


async def wait_until_listed(turn: Turn) -> End | None:
    """2. Stop if the upstream objects are not listed yet.

    Nothing is written upstream. If they cannot be listed or watched for 5 s, the provider reports this in its
    InferenceProviderConfig: `UpstreamReady` is False with the server's message, and `status.ready` is false. Each
    model then reports `ApplyFailed` if nothing was reported before, otherwise `StaleStatus`. A model that is being
    deleted reports the objects that it waits for. The time-out of a deletion continues to run.
    """
    context = turn.context
    if context.upstream.is_synced:
        return None
    if memory := context.memories.get(turn.key):
        # The CRD may have changed afterwards, so the refused objects are tried again.
        memory.refusal.reset()
    if turn.is_deleted:
        if not finalizer.has(turn.live, context.provider.name):
            return End(reports=False)
        return End(await deletion.give_up(context, turn.live, _reports(turn)), reports=False)
    if turn.is_ours:
        await unlisted.report(context, turn.live)
    return End(reports=False)


async def clean_up(turn: Turn) -> End | None:
    """3. Clean up if the ModelDeployment is being deleted.

    Delete the upstream object and the helpers that are in the stores, wait until they are gone, and remove our
    finalizer. Objects without an owner reference stay. Five minutes after the provider first saw the deletion, by its
    own clock, it removes the finalizer anyway (`--finalizer-timeout`). The Event `FinalizerTimeout`, and the message
    during the wait, name the remaining objects and the finalizers that hold them. An object of ours that lost its
    owner reference stays, and so does a Deployment that lost our labels and has another owner. The Event `ObjectLeft`
    names it (not after `--cascade=orphan`). After the same time, core removes the finalizer of a provider that was
    uninstalled. Core removes a finalizer at once if no provider of that name is registered and its field manager
    owns no field of the ModelDeployment (Event `FinalizerRemoved`). After a reset of managedFields, which hides the
    owners, core waits for the same time.
    """
    context, live = turn.context, turn.live
    # This step comes before the pause and all other steps: a deletion must succeed with an invalid spec and without
    # the CRD.
    if not turn.is_deleted:
        return None
    if finalizer.has(live, context.provider.name):
        return End(await deletion.terminate(context, live, _reports(turn)), reports=False)
    # A provider whose finalizer is still there reports itself. Two reports would overwrite each other.
    if turn.is_ours and not holders(live):
        await deletion.report_other_finalizers(context, live)
    return End(reports=False)


def _reports(turn: Turn) -> bool:
    """Check whether this provider reports on a ModelDeployment that is being deleted.

    Somebody may have emptied the status. During a deletion nobody else restores it.
    """
    is_in_charge = in_charge(turn.live) == turn.context.provider.name
    return is_in_charge or release.has_reported(turn.live, turn.context.manager)


async def keep_finalizer(turn: Turn) -> End | None:
    """4. Add our finalizer again if it was removed and our upstream object exists.

    This also happens if a later step ends the reconcile, for instance for a paused model.
    """
    context = turn.context
    if not turn.is_ours or finalizer.has(turn.live, context.provider.name):
        return None
    upstream = context.upstream.objects.get(turn.key)
    if upstream is None or not manifest.is_created_by(
        upstream, turn.live["metadata"]["uid"], context.manager
    ):
        return None
    # A refusal does not end the reconcile: a paused model stays paused, and for other models `add_finalizer` reports
    # the refusal.
    turn.retry_in(await finalizer.restore(context, turn.live))
    return None if turn.refresh() else End(reports=False)


async def stop_if_paused(turn: Turn) -> End | None:
    """5. Stop if the ModelDeployment is paused.

    If somebody has emptied the status, observe our object and report once more.
    """
    if not LiveModelDeployment(turn.live).is_paused:
        return None
    if turn.is_ours:
        await pause.keep_status(turn.context, turn.live)
    return End(reports=False)


async def release_deployment(turn: Turn) -> End | None:
    """6. Let go if another provider, or none, is selected.

    If another provider is selected, observe and report until that provider takes over. Then delete our objects,
    release all fields and remove our finalizer. If no provider is selected, observe and report. If we have no object
    then, and another provider holds the ModelDeployment, remove our finalizer.
    """
    if turn.is_ours:
        return None
    if finalizer.has(turn.live, turn.context.provider.name):
        turn.memory.is_returned = True
    return End(await deletion.release_deployment(turn.context, turn.live), reports=False)


async def wait_for_retry(turn: Turn) -> End | None:
    """7. Stop if a write has failed and its retry is not due, and repeat the report.

    Retry at once after an edit, after a change of the upstream CRD, or after the upstream object is deleted or
    recreated.
    """
    context, memory = turn.context, turn.memory
    turn.upstream = upstream = context.upstream.objects.get(turn.key)
    own = names.provider_finalizer(context.provider.name)
    turn.mark = failures.mark(turn.live, upstream, context.upstream.digest, own)
    if upstream is not None:
        # A new status is compared with the status before the write.
        names_generation = context.upstream.names_generation
        memory.generations.acknowledgement.is_processed(
            upstream, context.manager, names_generation=names_generation
        )
    failed = memory.failures.pending(turn.mark, turn.version, turn.now)
    if failed is None:
        return None
    earlier, left = failed
    # Repeat the failure, because otherwise the next event would remove it from the status, and each write of the
    # status is such an event.
    if earlier is not None:
        failures.repeat(turn.report, earlier)
    else:
        retained.repeat_report(turn.live, turn.report, context.manager)
    return End(left)
