"""Counts external providers for /metrics. No label is a name that a tenant chooses, except that of its namespace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kubefoundry_sdk._api.kinds import Object


class ProviderGauges(Collector):
    """A gauge over the rows of external providers in the status.

    Args:
        objects: Returns the LlamaStackDistributions to count.
    """

    def __init__(self, objects: Callable[[], Iterable[Object]]) -> None:
        self._objects = objects

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauge, computed from the current objects at each scrape."""
        gauge = GaugeMetricFamily(
            "kubefoundry_llamastack_providers",
            "External providers of LlamaStackDistributions.",
            labels=("namespace", "mode", "ready"),
        )
        counts: Counter[tuple[str, str, str]] = Counter()
        for obj in self._objects():
            for row in (obj.get("status") or {}).get("externalProviderStatus") or ():
                ready = str(bool(row.get("ready"))).lower()
                counts[obj["metadata"]["namespace"], row.get("mode") or "Inline", ready] += 1
        for labels, count in sorted(counts.items()):
            gauge.add_metric(labels, count)
        yield gauge
