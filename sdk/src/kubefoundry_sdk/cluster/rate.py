"""A client-side request limit (`--qps`)."""

from __future__ import annotations

import asyncio


class RateLimit:
    """Spaces out requests: at most `qps` a second on average, with bursts of one second's worth.

    0 means no limit; the API server's priority and fairness decides then.
    """

    def __init__(self, qps: float) -> None:
        self._qps = qps
        self._next = 0.0

    async def turn(self) -> None:
        """Waits until the next request may be sent."""
        if not self._qps:
            return
        now = asyncio.get_running_loop().time()
        # The slot may lie up to one second in the past: that is the burst.
        self._next = max(self._next, now - 1.0) + 1.0 / self._qps
        if self._next > now:
            await asyncio.sleep(self._next - now)
