"""Metrics that every component has (contract §6); a component declares its own next to its code.

Where a metric of client-go or controller-runtime has the same meaning, the component also exports that name, so that
dashboards and alerts for Go operators work. No label holds text that a tenant writes.
"""

from __future__ import annotations

from collections import Counter as Sums
from collections.abc import Iterator
from typing import Final

from prometheus_client import REGISTRY, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

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
ERROR_TYPES: Final = ("api", "conflict", "unreachable", "internal")
"""Values of the label `error_type`, each with a series from the start: Prometheus sees no increase in the first
value of a series."""

BUILD: Final = Gauge(
    "kubefoundry_build_info",
    "1 for each component of this process, with version and commit of its SDK, and the version of the contract.",
    ["component", "version", "commit", "contract"],
)
LEADING: Final = Gauge(
    "leader_election_master_status",
    "1 if this process holds the Lease of that name, otherwise 0.",
    ["name"],
)
RESULTS: Final = Counter(
    "controller_runtime_reconcile",
    "Reconciles by result: success, requeue_after, error.",
    ["controller", "result"],
)
ADDS: Final = Counter("workqueue_adds", "Objects that were added to the queue.", ["name"])
DEPTH: Final = Gauge("workqueue_depth", "Objects that wait for a worker.", ["name"])
WAITS: Final = Histogram(
    "workqueue_queue_duration_seconds",
    "Seconds for which an object waited for a worker.",
    ["name"],
    buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300),
)
UNFINISHED: Final = Gauge(
    "workqueue_unfinished_work_seconds", "Seconds that the running reconciles have taken, added up.", ["name"]
)
LONGEST: Final = Gauge(
    "workqueue_longest_running_processor_seconds",
    "Seconds that the longest running reconcile has taken.",
    ["name"],
)


class GoNames(Collector):
    """Exports metrics from above under the names that client-go and controller-runtime have for them."""

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, read from the originals at each scrape: a reconcile is measured once."""
        [durations] = RECONCILIATIONS.collect()
        yield _renamed(durations, "controller_runtime_reconcile_time_seconds", "controller")
        yield _renamed(durations, "workqueue_work_duration_seconds", "name")
        [errors] = ERRORS.collect()
        failures: Sums[str] = Sums()
        for sample in errors.samples:
            failures[sample.labels["provider"]] += int(sample.value)
        for name, label, text in (
            ("controller_runtime_reconcile_errors", "controller", "Reconciles that failed."),
            ("workqueue_retries", "name", "Reconciles that are retried."),
        ):
            family = CounterMetricFamily(name, text, labels=(label,))
            for queue, count in failures.items():
                family.add_metric((queue,), count)
            yield family


def _renamed(metric: Metric, name: str, label: str) -> Metric:
    """Return the metric under another name, with the label `provider` under the name `label`."""
    renamed = Metric(name, metric.documentation, metric.type)
    for sample in metric.samples:
        labels = {label if key == "provider" else key: value for key, value in sample.labels.items()}
        full_name = name + sample.name.removeprefix(metric.name)
        renamed.samples.append(sample._replace(name=full_name, labels=labels))
    return renamed


REGISTRY.register(GoNames())
