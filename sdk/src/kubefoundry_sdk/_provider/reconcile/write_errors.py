"""Ends a reconcile after an error in one of the steps that write (contract §4)."""

from __future__ import annotations

import logging
from dataclasses import replace

from kubefoundry_sdk._api import reasons
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.errors import ApiError, Repeated
from kubefoundry_sdk._provider.reconcile import failures, preconditions, retained
from kubefoundry_sdk._provider.reconcile.report import Stop
from kubefoundry_sdk._provider.reconcile.turn import End, Turn
from kubefoundry_sdk._runtime import metrics
from kubefoundry_sdk._runtime.refusals import Refused
from kubefoundry_sdk._runtime.server_side_apply import NameTaken

log = logging.getLogger(__name__)


def end_of(turn: Turn, error: Exception) -> End:
    """Report the error, and return when to try again."""
    if isinstance(error, NameTaken):
        turn.memory.failures.reset()
        turn.report.stop = preconditions.name_conflict(error, turn.live["metadata"]["uid"])
        # No event reports the deletion of an object that is not ours.
        return End(preconditions.RETRY_NAME)
    if isinstance(error, Refused):
        return _refused(turn, error)
    return _failed(turn, error)


def _refused(turn: Turn, refused: Refused) -> End:
    """Report that the API server, its admission or a quota refused an object or our fields on the ModelDeployment."""
    if not turn.digest:
        # The result of a dry run could not be stored. This refusal is not about the objects.
        turn.report.stop = Stop(reasons.RESOURCE_CREATED, "ApplyRejected", str(refused), failed=True)
        return End(refused.retry)
    turn.memory.failures.reset()
    refused.retry = turn.context.upstream.worth_another_try(refused.retry)
    # Remember the refusal, so that the next event does not send the same objects again.
    pending = turn.memory.refusal.remember(turn.digest, turn.now, refused)
    return End(retained.refused(turn.context, turn.live, turn.report, pending))


def _stop(turn: Turn, error: Exception) -> Stop:
    """Return the condition that reports the failure. A conflict may be one with an object that is not read."""
    context, (namespace, _) = turn.context, turn.key
    stop = failures.stop(context.provider, error)
    is_conflict = isinstance(error, ApiError) and error.conflict
    if is_conflict and turn.upstream is None and context.upstream.objects.is_incomplete(namespace):
        cause = (
            f"; provider {context.provider.name} does not read all {context.provider.upstream.kind} objects of "
            f"namespace '{namespace}', because they take too much of its memory together: create models in another "
            "namespace, or delete some"
        )
        return replace(stop, message=stop.message + cause)
    return stop


def _failed(turn: Turn, error: Exception) -> End:
    """Report an error of the API server that may pass, or an internal error."""
    context, report, now = turn.context, turn.report, turn.now
    stop = _stop(turn, error)
    retry = turn.memory.failures.note(turn.mark, turn.version, error, report, stop, now)
    api = isinstance(error, ApiError)
    # A conflict that is not reported: somebody else has written the object meanwhile.
    is_unreported_conflict = isinstance(error, ApiError) and error.conflict and report.stop is None
    if report.stop is None:
        retained.repeat_report(turn.live, report, context.manager)
    metrics.ERRORS.labels(context.provider.name, "api" if api else "internal").inc()
    level = logging.DEBUG if is_unreported_conflict or isinstance(error, Repeated) else logging.WARNING
    log.log(
        level,
        "writing failed, retrying",
        exc_info=not api,
        extra=logs.values(error=str(error), seconds=round(retry, 1)),
    )
    return End(retry)
