"""How long new models take until they run: from creation to Running, and from Deploying to Running.

Core measures with its own clock, because clocks of two machines are never compared. So it measures only models that
this replica has seen without a status. A restart of core forgets the models that are starting.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Final

from prometheus_client import Histogram

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._runtime.store import Key

SECONDS: Final = (1, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
"""Buckets. A start takes seconds on a warm node and an hour if a node and 100 GB of weights have to come first."""

LEAD_TIME: Final = Histogram(
    "kubefoundry_modeldeployment_lead_time_seconds",
    "Seconds from the creation of a ModelDeployment to its first phase Running.",
    ["provider"],
    buckets=SECONDS,
)
DEPLOYING: Final = Histogram(
    "kubefoundry_modeldeployment_deploying_seconds",
    "Seconds from the first phase Deploying of a ModelDeployment to its first phase Running.",
    ["provider"],
    buckets=SECONDS,
)


@dataclass(slots=True)
class _Start:
    uid: str
    created: float
    deploying: float | None = None


class LeadTimes:
    """Measures the starts of new models.

    Args:
        clock: Returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._starts: dict[Key, _Start] = {}

    def see(
        self, key: Key, deployment: Object | None, *, is_new: bool, counts: bool, providers: Container[str]
    ) -> None:
        """Record a change of a ModelDeployment.

        Args:
            key: Its namespace and name.
            deployment: The ModelDeployment, None if it is gone.
            is_new: Whether an object that is seen for the first time has just been created.
            counts: Whether this replica exports the measurement: of several replicas, only the leader does.
            providers: Registered providers, the only values of the label `provider`.
        """
        start = self._starts.get(key)
        live = LiveModelDeployment(deployment) if deployment else None
        if live is None or live.is_deleting or live.is_paused:
            self._starts.pop(key, None)
            return
        uid = live.obj["metadata"]["uid"]
        if start is None or start.uid != uid:
            self._starts.pop(key, None)
            if is_new and not live.status:
                self._starts[key] = _Start(uid, self._clock())
            return
        if live.phase == "Deploying" and start.deploying is None:
            start.deploying = self._clock()
        if live.phase == "Running":
            del self._starts[key]
            if counts:
                self._observe(start, label_of(live.provider_name, providers))

    def _observe(self, start: _Start, provider: str) -> None:
        now = self._clock()
        LEAD_TIME.labels(provider).observe(now - start.created)
        if start.deploying is not None:
            DEPLOYING.labels(provider).observe(now - start.deploying)


def prepare(provider: str) -> None:
    """Export empty histograms of a provider: Prometheus sees no increase in the first value of a series."""
    LEAD_TIME.labels(provider)
    DEPLOYING.labels(provider)


def label_of(provider: str | None, registered: Container[str]) -> str:
    """Return the value of the label `provider`: empty for a provider that is not registered.

    Only administrators register providers, so tenants cannot add series.
    """
    return provider if provider in registered and provider else ""
