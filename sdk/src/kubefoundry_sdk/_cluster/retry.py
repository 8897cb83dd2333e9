"""The wait before a request is sent again."""

from __future__ import annotations

import random

from kubefoundry_sdk._cluster.errors import LONGEST, ApiError, Unreachable


def spread(seconds: float) -> float:
    """Return the seconds, up to a fifth more or less, so that requests that failed together do not retry together."""
    return seconds * random.uniform(0.8, 1.2)


def wait(seconds: float, error: Exception, most: float = LONGEST) -> float:
    """Return the spread seconds until the next attempt after `error`.

    `Retry-After` is a lower bound, whoever sends it: the API server, or a load balancer that reaches none. The caller
    passes its back-off in `seconds`. Otherwise a server that always asks for one second would get a request a second.

    Args:
        seconds: The back-off.
        error: The failure of the last attempt.
        most: The longest `Retry-After` in seconds that is obeyed.
    """
    # Only longer, never shorter: the server has named the earliest time.
    return max(spread(seconds), requested(error, most) * random.uniform(1.0, 1.2))


def requested(error: Exception, most: float = LONGEST) -> float:
    """Return the seconds that a server asks to wait with `error`, at most `most`; 0 if it does not ask."""
    stated = error.retry_after if isinstance(error, ApiError | Unreachable) else None
    return min(stated or 0.0, most)
