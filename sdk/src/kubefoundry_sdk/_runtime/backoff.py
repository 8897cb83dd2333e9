"""Delays between failed attempts of a loop, or on one object (contract §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.retry import wait

DOUBLINGS: Final = 12
"""Failures in a row that are counted: a delay is at its maximum by then. A float overflows at 1,025."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double with each failure in a row.

    Attributes:
        first: The delay after the first failure, in seconds.
        last: The longest delay, in seconds; at most 2,048 times the first.
    """

    first: float
    last: float

    def after(self, failures: int) -> float:
        """Return the seconds until the next attempt, after that many failures in a row."""
        return min(self.first * 2.0 ** (min(failures, DOUBLINGS) - 1), self.last)


OBJECT: Final = Backoff(0.2, 300.0)
"""The delays of one object. The last delay is also the longest `Retry-After` that is obeyed."""

FAULT_DELAY: Final = 60.0
"""The longest delay in seconds after an error that is not about the object, such as a webhook that is down or an API
server with too many requests."""

OUTAGE_DELAY: Final = 15.0
"""The longest delay in seconds after no response. All objects wait during an outage, so its end has to be noticed
soon. The window of writes (`congestion`) limits all of them together to about one request a second."""

_OUTAGE: Final = (502, 503, 504)
"""Status codes of an API server that is unavailable, or of a load balancer in front of it."""


def delay(failures: int, error: Exception) -> float:
    """Return the spread seconds until the next attempt on an object, at least those that the server asks for.

    Args:
        failures: how many attempts failed in a row, this one included.
        error: the last failure.
    """
    return wait(min(OBJECT.after(failures), _longest(error)), error, OBJECT.last)


def _longest(error: Exception) -> float:
    if isinstance(error, Unreachable):
        return OUTAGE_DELAY
    if isinstance(error, ApiError):
        if error.code in _OUTAGE:
            return OUTAGE_DELAY
        if error.code == 429 or (error.code >= 500 and not error.rejected):
            return FAULT_DELAY
    return OBJECT.last
