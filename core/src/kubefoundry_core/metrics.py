"""Core's metrics (contract §6): gauges that are computed at each scrape, and its selections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kubefoundry_core.lead_time import label_of
from kubefoundry_core.provider_health import Providers
from kubefoundry_sdk._api import reasons
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment

CONDITIONS = (
    reasons.UPSTREAM_READY,
    reasons.UPSTREAM_OPERATOR_UP,
    reasons.RULES_VALID,
    reasons.SETTINGS_DISCOVERED,
)
"""Values of the label `condition`: conditions of an InferenceProviderConfig."""

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
        registered: Returns the names of the registered providers.
        per_object: Also export series for each ModelDeployment.
    """

    def __init__(
        self,
        objects: Callable[[], Iterable[Object]],
        registered: Callable[[], Container[str]],
        *,
        per_object: bool,
    ) -> None:
        self._objects = objects
        self._registered = registered
        self._per_object = per_object

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges, computed from the current objects at each scrape."""
        # The second name is in the design. promtool rejects it for a gauge, because it has the suffix of a counter,
        # so the first name is exported, too.
        totals = [
            GaugeMetricFamily(name, "ModelDeployments by namespace and phase.", labels=("namespace", "phase"))
            for name in ("kubefoundry_modeldeployments", "kubefoundry_modeldeployment_total")
        ]
        by_provider = GaugeMetricFamily(
            "kubefoundry_provider_modeldeployments",
            "ModelDeployments by provider and phase.",
            labels=("provider", "phase"),
        )
        counts: Counter[tuple[str, str]] = Counter()
        provider_counts: Counter[tuple[str, str]] = Counter()
        registered = self._registered()
        for obj in self._objects():
            live = LiveModelDeployment(obj)
            counts[obj["metadata"]["namespace"], _phase(live)] += 1
            provider_counts[label_of(live.provider_name, registered), _phase(live)] += 1
        for labels, count in sorted(counts.items()):
            for total in totals:
                total.add_metric(labels, count)
        for labels, count in sorted(provider_counts.items()):
            by_provider.add_metric(labels, count)
        yield from totals
        yield by_provider
        if self._per_object:
            yield from self._collect_per_object()

    def _collect_per_object(self) -> Iterator[GaugeMetricFamily]:
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
        for obj in self._objects():
            name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
            live = LiveModelDeployment(obj)
            phases.add_metric((name, namespace, _phase(live)), 1)
            counted = live.status.get("replicas") or {}
            for state in STATES:
                if state in counted:
                    replicas.add_metric((name, namespace, state), counted[state])
        yield replicas
        yield phases


def _phase(live: LiveModelDeployment) -> str:
    # A model without a phase is not reconciled yet. If a model is deleted while its provider is down, its phase is
    # stale.
    return "Terminating" if live.is_deleting else live.phase or "Pending"


class ProviderGauges(Collector):
    """Gauges over registered providers.

    Args:
        registered: Returns the InferenceProviderConfigs by name; none on a replica that does not lead.
        providers: Core's observations of their heartbeats.
    """

    def __init__(self, registered: Callable[[], Mapping[str, Object]], providers: Providers) -> None:
        self._registered = registered
        self._providers = providers

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges."""
        up = GaugeMetricFamily(
            "kubefoundry_provider_up",
            "1 if the provider sends heartbeats, 0 if it counts as lost.",
            labels=("provider",),
        )
        ages = GaugeMetricFamily(
            "kubefoundry_provider_heartbeat_age_seconds",
            "Seconds since core saw a new heartbeat of the provider.",
            labels=("provider",),
        )
        conditions = GaugeMetricFamily(
            "kubefoundry_provider_condition",
            "1 if the condition of the InferenceProviderConfig is True, 0 if False, no series if unknown.",
            labels=("provider", "condition"),
        )
        lost_in, heartbeat_ages = self._providers.lost_in(), self._providers.heartbeat_ages()
        for name, config in sorted(self._registered().items()):
            if (
                name in lost_in
            ):  # a config that core could not read has no entry, and must not break the scrape
                up.add_metric((name,), int(lost_in[name] > 0))
                ages.add_metric((name,), heartbeat_ages[name])
            reported = (config.get("status") or {}).get("conditions")
            for type_ in CONDITIONS:
                status = (find(reported, type_) or {}).get("status")
                if status in ("True", "False"):
                    conditions.add_metric((name, type_), int(status == "True"))
        yield from (up, ages, conditions)
