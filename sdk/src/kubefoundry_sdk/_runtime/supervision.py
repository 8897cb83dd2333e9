"""Restarts background work that failed, as controller-runtime recovers a reconcile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from prometheus_client import Counter

from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.retry import spread
from kubefoundry_sdk._runtime.backoff import Backoff

log = logging.getLogger(__name__)

PAUSES: Final = Backoff(1.0, 60.0)
"""Delays before failed work is restarted."""

STEADY: Final = 300.0
"""Seconds of work after which a failure counts as the first in a row."""

FAILURES: Final = Counter(
    "kubefoundry_background_failures",
    "Internal errors in background work, which is restarted each time.",
    ["work"],
)

Work = Callable[[], Awaitable[None]]


async def supervise(name: str, work: Work) -> None:
    """Run the work until it is done, from the beginning after each failure."""
    failures = 0
    # Prometheus sees no increase in the first value of a series.
    failed = FAILURES.labels(name)
    clock = asyncio.get_running_loop().time
    while True:
        begun = clock()
        try:
            return await work()
        except Exception:
            failures = 1 if clock() - begun > STEADY else failures + 1
            pause = PAUSES.after(failures)
            failed.inc()
            log.exception("internal error, restarting the work", extra=logs.values(work=name, seconds=pause))
        await asyncio.sleep(spread(pause))
