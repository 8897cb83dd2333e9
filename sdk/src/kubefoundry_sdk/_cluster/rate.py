"""Limits of rates: a client-side request limit (`--qps`), and a bucket of tokens."""

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
        """Wait until the next request may be sent."""
        if not self._qps:
            return
        now = asyncio.get_running_loop().time()
        # The slot may lie up to one second in the past: that is the burst.
        self._next = max(self._next, now - 1.0) + 1.0 / self._qps
        if self._next > now:
            await asyncio.sleep(self._next - now)


class Bucket:
    """Tokens that refill evenly: a number of them may be taken at once, and one more after each interval."""

    def __init__(self, size: int, every: float) -> None:
        """Create a full bucket of `size` tokens, to which a token is added every `every` seconds."""
        self._size = float(size)
        self._every = every
        self._tokens = self._size
        self._at = 0.0

    def wait(self, now: float) -> float:
        """Return the seconds until a token is there, 0 if there is one.

        Args:
            now: Monotonic seconds.
        """
        self._tokens = min(self._size, self._tokens + (now - self._at) / self._every)
        self._at = now
        return max(0.0, (1 - self._tokens) * self._every)

    def take(self) -> None:
        """Take a token; an empty bucket stays empty."""
        self._tokens = max(0.0, self._tokens - 1)
