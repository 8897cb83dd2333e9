"""Reports a failed request of a clean-up in the status and an Event, and delays the next (contract §4.3, §4.6).

A watch event does not shorten the delay, because an upstream operator may write a status many times a second.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from kubefoundry_sdk._api.conditions import clip
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._runtime import metrics
from kubefoundry_sdk._runtime.store import key_of

log = logging.getLogger(__name__)

WORDS: Final = 600
"""Characters of a refusal that are reported. A policy's words may be long, and an Event has 1024 bytes."""


def state(context: Context, live: Object, *further: str) -> list[str]:
    """Return the objects of a ModelDeployment and their deletion state. A new state ends the delay of a request."""
    meta = live["metadata"]
    main = context.upstream.objects.get(key_of(live)) if context.upstream.kind else None
    objects = [*([main] if main else []), *context.helpers.of(meta["namespace"], meta["uid"])]
    going = [f"{obj['metadata']['uid']} {'deletionTimestamp' in obj['metadata']}" for obj in objects]
    return [str(meta.get("generation")), *going, *further]


async def put_off(
    context: Context,
    live: Object,
    objects: Sequence[str],
    problem: str,
    error: ApiError,
    report_message: Callable[[str], Awaitable[object]] | None,
) -> float:
    """Report a failed request about the objects of `state`. Return the seconds until the next one.

    A failure that may pass is reported the second time in a row. `problem` is the sentence that names the failed
    request, for the user. `report_message` writes a message to the status; None if another component does. Raise
    ApiError if the object has changed meanwhile, so its event will follow, or if the status could not be written.
    """
    if error.conflict:
        raise error
    removal = context.memory(key_of(live)).removal
    delay = removal.failed(objects, error, context.clock())
    metrics.ERRORS.labels(context.provider.name, "api").inc()
    log.warning("request failed", extra=logs.values(problem=problem, error=str(error), retry=round(delay, 1)))
    if error.rejected or removal.failures > 1:
        words = clip(str(error), WORDS)
        context.recorder.event(
            live, "Warning", "WriteRejected", f"{problem}: {words}; retrying with back-off"
        )
        if report_message is not None:
            await report_message(f"{problem}: {clip(error.message, WORDS)}")
    return delay
