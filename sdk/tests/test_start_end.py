"""A start ends once the newest spec serves: an outage, a repair of drift and a replaced pod have none."""

from __future__ import annotations

import pytest

from kubefoundry_sdk._api.kinds import PODS
from kubefoundry_sdk._cluster.requests import path
from kubefoundry_sdk.testing import simulated
from kubefoundry_sdk.testing._harness import NAMESPACE
from support import things
from support.starting_model import add_pod, harness, replace_pod, report_pod, serve


@simulated
async def test_new_process_does_not_take_an_early_outage_for_a_start() -> None:
    async with harness() as model:
        await serve(model)
        await model.advance(10)
        await model.upstream({"ready": 0})
        await model.restart()
        await replace_pod(model)

    assert model.status["phase"] == "Running"
    assert "start" not in model.status


@pytest.mark.parametrize("names_generation", [False, True])
@simulated
async def test_outage_after_a_repair_of_drift_has_no_start(names_generation: bool) -> None:
    async with harness() as model:
        await serve(model)
        await model.advance(100)
        upstream = model.upstream_object
        model.put({**upstream, "spec": {**upstream["spec"], "image": "other"}}, manager="somebody")
        await model.advance(30)
        repaired = model.upstream_object
        generation = {"observedGeneration": repaired["metadata"]["generation"]} if names_generation else {}
        await model.upstream({"ready": 1, **generation})
        await model.advance(300)
        await replace_pod(model, generation)

    assert repaired["spec"]["image"] == upstream["spec"]["image"]
    assert model.status["phase"] == "Running"
    assert "start" not in model.status


@simulated
async def test_outage_after_an_edit_that_started_no_pod_has_no_start() -> None:
    async with harness() as model:
        await serve(model)
        await model.advance(1000)
        await model.edit({"scaling": {"replicas": 2}})
        await model.upstream({"ready": 1, "observedGeneration": 2})
        await replace_pod(model, {"observedGeneration": 2})

    assert model.status["phase"] == "Running"
    assert "start" not in model.status


@simulated
async def test_pod_that_replaces_another_later_is_no_part_of_the_start() -> None:
    async with harness() as model:
        await model.create(things.SPEC)
        await model.upstream({"ready": 1})
        await model.advance(3600)
        add_pod(model)
        report_pod(model, is_ready=True)
        await model.upstream({"ready": 2})

    assert model.status["phase"] == "Running"
    assert "start" not in model.status


@simulated
async def test_new_process_tells_an_ended_outage_from_a_start() -> None:
    async with harness() as model:
        await serve(model)
        await model.advance(1000)
        await model.upstream({"ready": 0})
        add_pod(model, "model-1")
        report_pod(model, is_ready=True, name="model-1")
        await model.restart()
        await model.upstream({"ready": 1})

    assert model.status["phase"] == "Running"
    assert "start" not in model.status


@simulated
async def test_new_process_continues_rollout_with_reported_pod() -> None:
    async with harness() as model:
        await serve(model)
        await model.advance(1000)
        await model.edit({"image": "example.com/engine:2"})
        await model.advance(100)
        model._send("DELETE", path(PODS, NAMESPACE, "model-0"))
        add_pod(model, "model-1")
        await model.advance(1)
        await model.upstream({"ready": 0, "observedGeneration": 2})
        await model.restart()
        await model.advance(60)
        report_pod(model, is_ready=True, name="model-1")
        await model.upstream({"ready": 1, "observedGeneration": 2})

    assert model.status["start"]["pod"] == "model-1"


@simulated
async def test_new_process_reports_no_start_without_a_reported_pod() -> None:
    async with harness() as model:
        await serve(model)
        await model.advance(1000)
        await model.edit({"image": "example.com/engine:2"})
        await model.advance(100)
        await model.upstream({"ready": 0, "observedGeneration": 2})
        await model.restart()
        model._send("DELETE", path(PODS, NAMESPACE, "model-0"))
        add_pod(model, "model-1")
        report_pod(model, is_ready=True, name="model-1")
        await model.upstream({"ready": 1, "observedGeneration": 2})

    # Nothing shows that this is no outage.
    assert model.status["phase"] == "Running"
    assert "start" not in model.status
