"""How long a failed object waits for its next attempt (contract §4)."""

from __future__ import annotations

import random
from typing import Final

from kubefoundry_sdk.cluster.errors import ApiError, Unreachable

FIRST_DELAY: Final = 0.2
LAST_DELAY: Final = 300.0
"""Seconds: the delay doubles from the first to the last, which is also the longest `Retry-After` obeyed."""

FAULT_DELAY: Final = 60.0
"""Seconds: the longest delay after an error that says nothing about the object, such as a webhook that is down."""

OUTAGE_DELAY: Final = 15.0
"""Seconds: the longest delay after no response. All objects wait during an outage, so that the end of it has to be
noticed soon; the window of writes (`congestion`) bounds the requests of all of them to about one a second."""

DOUBLINGS: Final = 12
"""Failures in a row that are counted: with the twelfth the delay is at its maximum. A float overflows at 1,025."""

_OUTAGE: Final = (502, 503, 504)
"""Status codes of an API server that is away, or of a load balancer in front of it."""


def delay(failures: int, error: Exception) -> float:
    """Return the seconds until the next attempt, spread by a fifth so that objects do not retry in step.

    Args:
        failures: how many attempts failed in a row, this one included.
        error: the last failure.
    """
    return min(doubled(failures), _longest(error)) * random.uniform(0.8, 1.2)


def doubled(failures: int) -> float:
    """Return the seconds after that many failures in a row, without a limit for the kind of error."""
    return FIRST_DELAY * 2.0 ** (min(failures, DOUBLINGS) - 1)


def _longest(error: Exception) -> float:
    if isinstance(error, Unreachable):
        return OUTAGE_DELAY
    if isinstance(error, ApiError):
        if error.code in _OUTAGE:
            return OUTAGE_DELAY
        if error.code >= 500 and not error.rejected:
            return FAULT_DELAY
    return LAST_DELAY
