"""Core's metrics (contract §6): gauges over all ModelDeployments, counted at each scrape, and its selections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kubefoundry_sdk._api import reasons
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment

STATES = ("desired", "ready", "available")
"""Values of the label `state`: the fields of `status.replicas`."""


def selection(before: Object, decided: Object) -> tuple[str, str] | None:
    """Return the labels of SELECTIONS for core's selection; None if it selects nothing, or the same as before.

    Args:
        before: The status before.
        decided: Core's new fields (`decision.decide`).
    """
    condition = find(decided["conditions"], reasons.PROVIDER_SELECTED)
    if condition is None:
        return None
    labels = _labels(condition, decided)
    earlier = find(before.get("conditions"), reasons.PROVIDER_SELECTED)
    return None if earlier and _labels(earlier, before) == labels else labels


def _labels(condition: Object, status: Object) -> tuple[str, str]:
    selected = condition.get("status") == "True"
    provider = (status.get("provider") or {}).get("name") if selected else None
    return provider or "", str(condition.get("reason"))


class Deployments(Collector):
    """Gauges over ModelDeployments.

    Args:
        objects: Returns the ModelDeployments to count.
        per_object: Also export series for each of them.
    """

    def __init__(self, objects: Callable[[], Iterable[Object]], *, per_object: bool) -> None:
        self._objects = objects
        self._per_object = per_object

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges, computed from the current objects at each scrape."""
        # The second name is in the design. promtool rejects it for a gauge, because it has the suffix of a counter,
        # so the first name is exported, too.
        totals = [
            GaugeMetricFamily(name, "ModelDeployments by namespace and phase.", labels=("namespace", "phase"))
            for name in ("kubefoundry_modeldeployments", "kubefoundry_modeldeployment_total")
        ]
        replicas = GaugeMetricFamily(
            "kubefoundry_deployment_replicas",
            "Replicas of a ModelDeployment: desired, ready, available.",
            labels=("name", "namespace", "state"),
        )
        phases = GaugeMetricFamily(
            "kubefoundry_deployment_phase",
            "1 for the phase that a ModelDeployment is in.",
            labels=("name", "namespace", "phase"),
        )
        counts: Counter[tuple[str, str]] = Counter()
        for obj in self._objects():
            name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
            live = LiveModelDeployment(obj)
            # A model without a phase is not reconciled yet. If a model is deleted while its provider is down, its
            # phase is stale.
            phase = "Terminating" if live.is_deleting else live.phase or "Pending"
            counts[namespace, phase] += 1
            if self._per_object:
                phases.add_metric((name, namespace, phase), 1)
                counted = live.status.get("replicas") or {}
                for state in STATES:
                    if state in counted:
                        replicas.add_metric((name, namespace, state), counted[state])
        for labels, count in sorted(counts.items()):
            for total in totals:
                total.add_metric(labels, count)
        yield from totals
        if self._per_object:
            yield replicas
            yield phases
