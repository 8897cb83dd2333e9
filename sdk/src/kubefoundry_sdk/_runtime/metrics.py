"""Metrics that every component has (contract §6); a component declares its own next to its code."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

# Otherwise every counter and histogram has a second series with its creation time.
disable_created_metrics()  # type: ignore[no-untyped-call]

RECONCILIATIONS: Final = Histogram(
    "kubefoundry_reconciliation_duration_seconds",
    "Duration of reconciles in seconds.",
    ["provider"],
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
PENDING: Final = Gauge(
    "kubefoundry_reconciliations_pending",
    "Objects that wait for a worker or are being reconciled.",
    ["provider"],
)
ERRORS: Final = Counter(
    "kubefoundry_reconciliation_errors",
    "Reconciles that failed and are retried, by kind of error: api, conflict, unreachable, internal.",
    ["provider", "error_type"],
)
