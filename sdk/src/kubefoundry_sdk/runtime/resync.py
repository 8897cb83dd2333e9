"""Every object gets a turn once in a while, whatever was missed: heals what nobody thought of."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Final

from kubefoundry_sdk.runtime.store import Key

PERIOD: Final = 6 * 3600.0
"""Seconds from one turn of an object to the next, about. One where nothing has changed costs no request."""


async def resync(keys: Callable[[], Iterable[Key]], add: Callable[[Key], None]) -> None:
    """Adds one key after the other, evenly over PERIOD and by chance a little earlier or later, until cancelled."""
    while True:
        round_ = list(keys())
        pause = PERIOD / max(1, len(round_))
        for key in round_:
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            add(key)
        if not round_:
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
