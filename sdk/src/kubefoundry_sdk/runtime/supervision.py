"""Restarts background work that failed, as controller-runtime recovers a reconcile."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Final

from prometheus_client import Counter

log = logging.getLogger(__name__)

FIRST_PAUSE: Final = 1.0
LAST_PAUSE: Final = 60.0
"""Seconds until failed work is restarted, doubling from the first to the last."""

STEADY: Final = 300.0
"""Seconds of work after which a failure counts as the first."""

FAILURES: Final = Counter(
    "kubefoundry_background_failures",
    "Internal errors in background work, which is restarted each time.",
    ["work"],
)

Work = Callable[[], Awaitable[None]]


async def kept_up(name: str, work: Work) -> None:
    """Runs the work until it is done, from the beginning after each failure."""
    pause = FIRST_PAUSE
    clock = asyncio.get_running_loop().time
    while True:
        begun = clock()
        try:
            return await work()
        except Exception:
            if clock() - begun > STEADY:
                pause = FIRST_PAUSE
            FAILURES.labels(name).inc()
            log.exception("internal error in %s: restarting it in %.0f s", name, pause)
        await asyncio.sleep(pause * random.uniform(0.8, 1.2))
        pause = min(2 * pause, LAST_PAUSE)
