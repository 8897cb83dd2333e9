"""Reconciles every object from time to time, which corrects missed events and unforeseen errors."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Final

from kubefoundry_sdk._runtime.store import Key

PERIOD: Final = 6 * 3600.0
"""Seconds between two resyncs of an object, roughly. A resync that detects no change costs no request."""


async def resync(keys: Callable[[], Iterable[Key]], add: Callable[[Key], None]) -> None:
    """Add one key after the other, evenly over PERIOD with some jitter, until cancelled."""
    while True:
        round_ = list(keys())
        pause = PERIOD / max(1, len(round_))
        for key in round_:
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            add(key)
        if not round_:
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
