"""The metrics of each component (contract §6)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kubefoundry_local.suite import Component, Suite
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.client import Client
from support.deployments import GPU, model_deployment
from support.metrics import Series, sample, scrape, until_scraped
from support.waiting import phase, until_deployment

pytestmark = pytest.mark.integration


@contextmanager
def with_per_object_metrics(core: Component) -> Iterator[None]:
    """Core restarted with the switch on, and as it was afterwards."""
    core.stop()
    core.command.append("--per-object-metrics")
    try:
        core.start()
        core.wait_ready()
        yield
    finally:
        if core.running:
            core.stop()
        core.command.remove("--per-object-metrics")
        core.start()
        core.wait_ready()


async def until_counted(core: Component, namespace: str) -> Series:
    """What core tells once it counts one running deployment there.

    Its watch may be a moment behind the test's, and a replica that does not hold the Lease counts nothing.
    """
    counted = {"namespace": namespace, "phase": "Running"}
    return await until_scraped(
        core, lambda series: sample(series, "kubefoundry_modeldeployment_total", **counted) == 1
    )


async def test_metrics_count_models_by_phase(suite: Suite, api: Client, namespace: str) -> None:
    core, selector, subject = (suite.components[name] for name in ("core", "selector", "dynamo"))
    chosen = {"provider": "dynamo", "reason": "AutoSelected"}
    before = sample(scrape(selector), "kubefoundry_provider_selection_total", **chosen) or 0

    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU), manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")

    reported = await until_counted(core, namespace)
    assert not any(name.startswith("kubefoundry_deployment_") for name, _ in reported)
    assert sample(scrape(selector), "kubefoundry_provider_selection_total", **chosen) == before + 1
    turns = sample(scrape(subject), "kubefoundry_reconciliation_duration_seconds_count", provider="dynamo")
    assert turns is not None and turns > 0


async def test_each_deployment_has_series_only_where_asked(suite: Suite, api: Client, namespace: str) -> None:
    await api.create(MODEL_DEPLOYMENTS, model_deployment("m", namespace, GPU), manager="test")
    await until_deployment(api, "m", namespace, lambda obj: phase(obj) == "Running")

    one = {"name": "m", "namespace": namespace}
    with with_per_object_metrics(suite.components["core"]):
        reported = await until_counted(suite.components["core"], namespace)

    assert sample(reported, "kubefoundry_deployment_phase", **one, phase="Running") == 1
    for state in ("desired", "ready", "available"):
        assert sample(reported, "kubefoundry_deployment_replicas", **one, state=state) == 1
