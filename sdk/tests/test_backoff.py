"""The delay until a failed attempt is repeated."""

from __future__ import annotations

import pytest

from kubefoundry_sdk._cluster.errors import LONGEST, ApiError, ForeignAnswer, Unreachable
from kubefoundry_sdk._runtime import backoff


@pytest.mark.parametrize(
    ("error", "longest"),
    [
        (Unreachable("no answer"), backoff.OUTAGE_DELAY),
        (ApiError(502, "Unknown", "<html>"), backoff.OUTAGE_DELAY),
        (ApiError(503, "ServiceUnavailable", "later"), backoff.OUTAGE_DELAY),
        (ApiError(504, "Timeout", "later"), backoff.OUTAGE_DELAY),
        (ApiError(429, "TooManyRequests", "later"), backoff.FAULT_DELAY),
        (ApiError(500, "InternalError", "failed calling webhook"), backoff.FAULT_DELAY),
        (ApiError(500, "InternalError", "etcdserver: request is too large"), backoff.OBJECT.last),
        (ApiError(422, "Invalid", "no"), backoff.OBJECT.last),
        (ApiError(409, "Conflict", "quota"), backoff.OBJECT.last),
        (ZeroDivisionError("x"), backoff.OBJECT.last),
    ],
)
def test_backoff_doubles_up_to_the_longest_delay_of_its_error(error: Exception, longest: float) -> None:
    delays = [backoff.delay(failures, error) for failures in (1, 2, 3, 12, 2000)]

    spread = zip(delays, (0.2, 0.4, 0.8, longest, longest), strict=True)
    assert [(delay, expected) for delay, expected in spread if not 0.8 <= delay / expected <= 1.2] == []


@pytest.mark.parametrize("requested", [2.0, 59.0, LONGEST, 86400.0])
@pytest.mark.parametrize(
    "error", [ForeignAnswer("a page", 503), Unreachable("a proxy"), ApiError(429, "TooManyRequests", "later")]
)
def test_backoff_is_never_below_retry_after(error: ApiError | Unreachable, requested: float) -> None:
    error.retry_after = requested

    delays = {backoff.delay(1, error) for _ in range(50)}

    bounded = min(requested, LONGEST)
    assert min(delays) >= bounded
    assert max(delays) <= bounded * 1.2
    assert len(delays) > 1
