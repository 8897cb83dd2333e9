"""The lead time of new models: measured once, only from what this replica has seen."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import REGISTRY

from kubefoundry_core.lead_time import LeadTimes
from kubefoundry_sdk._api.names import PAUSED_ANNOTATION

LEAD_TIME = "kubefoundry_modeldeployment_lead_time_seconds"
DEPLOYING = "kubefoundry_modeldeployment_deploying_seconds"
KEY = ("n", "m")


def model(phase: str = "", *, uid: str = "1", provider: str = "acme", **metadata: Any) -> dict[str, Any]:
    status = {"phase": phase, "provider": {"name": provider}} if phase else {}
    return {"metadata": {"name": "m", "namespace": "n", "uid": uid, **metadata}, "status": status}


class Watched:
    """What a replica of core has seen. Its clock moves by 10 s with each event."""

    def __init__(self, *, is_new: bool = True, counts: bool = True) -> None:
        self.is_new, self.counts = is_new, counts
        self.now = 0.0
        self.lead_times = LeadTimes(lambda: self.now)

    def sees(self, deployment: dict[str, Any] | None) -> None:
        self.now += 10
        self.lead_times.see(KEY, deployment, is_new=self.is_new, counts=self.counts, providers={"acme"})


def sums(provider: str = "acme") -> tuple[float, float]:
    """Return the sums of both histograms, 0 without a sample."""
    lead, deploying = (
        REGISTRY.get_sample_value(f"{name}_sum", {"provider": provider}) or 0.0
        for name in (LEAD_TIME, DEPLOYING)
    )
    return lead, deploying


def added(watched: Watched, *events: dict[str, Any] | None, provider: str = "acme") -> tuple[float, float]:
    """Return the samples that the events add to both histograms."""
    before = sums(provider)
    for event in events:
        watched.sees(event)
    after = sums(provider)
    return after[0] - before[0], after[1] - before[1]


def test_start_is_measured_from_creation_and_from_deploying() -> None:
    events = (model(), model("Pending"), model("Deploying"), model("Deploying"), model("Running"))

    assert added(Watched(), *events) == (40, 20)


def test_start_is_measured_once() -> None:
    events = (model(), model("Running"), model("Deploying"), model("Running"))

    assert added(Watched(), *events) == (10, 0)


@pytest.mark.parametrize(
    ("watched", "events"),
    [
        pytest.param(Watched(is_new=False), [model()], id="created before this process"),
        pytest.param(Watched(), [model("Pending")], id="first seen with a status"),
        pytest.param(Watched(counts=False), [model()], id="not the leader"),
        pytest.param(Watched(), [model(), None], id="deleted"),
        pytest.param(
            Watched(), [model(), model(deletionTimestamp="2026-01-01T00:00:00Z")], id="being deleted"
        ),
        pytest.param(Watched(), [model(), model(annotations={PAUSED_ANNOTATION: "true"})], id="paused"),
        pytest.param(Watched(), [model(uid="0")], id="recreated, and the new one was not seen"),
    ],
)
def test_unknown_start_is_not_measured(watched: Watched, events: list[dict[str, Any] | None]) -> None:
    assert added(watched, *events, model("Running")) == (0, 0)


def test_unregistered_provider_is_counted_without_its_name() -> None:
    assert added(Watched(), model(), model("Running", provider="invented"), provider="") == (10, 0)
    assert REGISTRY.get_sample_value(f"{LEAD_TIME}_sum", {"provider": "invented"}) is None
