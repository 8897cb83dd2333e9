"""The steps that follow the writes in any case (contract §4.20, §4.21). Each docstring is the contract's text."""

from __future__ import annotations

from typing import Any

from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._provider.health.references import bundle_of, secret_of
from kubefoundry_sdk._provider.reconcile import (
    dry_run,
    finalizer,
    handover,
    observation,
    own_status,
    pace,
    start_report,
    unlisted,
)
from kubefoundry_sdk._provider.reconcile.report import transitions
from kubefoundry_sdk._provider.reconcile.turn import End, Turn


async def observe(turn: Turn) -> End | None:
    """20. Read the upstream's status."""
    turn.retry_in(await observation.observe(turn.context, turn.live, turn.report, turn.last_record))
    unlisted.note(turn.context, turn.report)
    return None


async def write_status(turn: Turn) -> End | None:
    """21. Write the status if it differs, and an Event for each transition.

    While the upstream's status does not settle, send 20 writes without a delay, then one every 6 s. Report at once a
    model that stops serving, a newer generation of the spec, or a new obstacle to writing.
    """
    context, report = turn.context, turn.report
    if not await _is_still_ours(turn):
        return End()
    if report.stop is None and report.compatible is None:
        # This reconcile has no result, and we own no status: core's report stays.
        return None
    status = _status(turn)
    wait = turn.memory.status_writes.wait(turn.now)
    if wait and pace.can_wait(LiveModelDeployment(turn.live).status, status):
        turn.retry_in(wait)
        return None
    if not await _write(turn, status):
        return End()
    if "phase" in status:
        await own_status.unpublish(context, turn.live, status)
    if status.get("phase") != "Running":
        secret, bundle = secret_of(turn.live), bundle_of(report.live)
        turn.retry_in(await context.secrets.check(turn.live, secret, turn.memory.secret))
        turn.retry_in(await context.config_maps.check(turn.live, bundle, turn.memory.config_map))
    return None


def _status(turn: Turn) -> dict[str, Any]:
    """Return the fields of the status that are ours to write."""
    context, report = turn.context, turn.report
    if report.observation is None and handover.is_reported_by_other(turn.live, context.manager):
        # The provider that serves reports on the model. Two providers would overwrite each other's fields. The
        # engine shows for which selected engine the conditions were decided.
        stated = {"provider": {"engine": report.engine}} if report.engine else {}
        return {**stated, "conditions": report.conditions()}
    return report.status(context.provider)


async def _write(turn: Turn, status: dict[str, Any]) -> bool:
    """Write the status if it differs, with its Events. Return as `Turn.refresh`."""
    before = turn.live
    if not await own_status.write(turn.context, before, status):
        return True
    turn.memory.status_writes.take()
    start_report.note_written(turn.context, before, status)
    for kind, reason, note in transitions(LiveModelDeployment(before).status, status):
        turn.context.recorder.event(turn.live, kind, reason, note)
    return turn.refresh()


async def _is_still_ours(turn: Turn) -> bool:
    """Remove the outdated result of an earlier dry run. Return as `Turn.refresh`."""
    if not turn.refresh():
        return False
    stop = turn.report.stop
    is_outdated = stop is not None and stop.reason != "DryRun"
    if not is_outdated or not finalizer.owns_result(turn.live, turn.context.provider.name):
        return True
    turn.retry_in(await dry_run.withdraw(turn.context, turn.live))
    return turn.refresh()
