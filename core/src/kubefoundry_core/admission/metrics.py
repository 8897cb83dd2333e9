"""Metrics of the webhooks: requests and latency under controller-runtime's names, and verdicts.

The label `webhook` is a path of a route. Other paths are not counted, because anyone may request them.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from prometheus_client import Counter, Histogram

from kubefoundry_core.admission.review import Review

REQUESTS: Final = Counter(
    "controller_runtime_webhook_requests", "Requests to a webhook by status code.", ["webhook", "code"]
)
LATENCY: Final = Histogram(
    "controller_runtime_webhook_latency_seconds",
    "Seconds from the head of a request to a webhook until its response.",
    ["webhook"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
VERDICTS: Final = Counter(
    "kubefoundry_admission_reviews", "Answered admission reviews: allowed, denied.", ["webhook", "verdict"]
)


@web.middleware
async def measured(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Count and time a request to a webhook."""
    if request.match_info.http_exception is not None:
        return await handler(request)
    begun, code = time.perf_counter(), "500"
    try:
        response = await handler(request)
        code = str(response.status)
        return response
    finally:
        REQUESTS.labels(request.path, code).inc()
        LATENCY.labels(request.path).observe(time.perf_counter() - begun)


def count_verdict(webhook: str, review: Review) -> Review:
    """Count the verdict of an answered review, and return the review."""
    VERDICTS.labels(webhook, "allowed" if review["response"]["allowed"] else "denied").inc()
    return review
