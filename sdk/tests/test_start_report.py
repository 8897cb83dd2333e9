"""`status.start`: written with other changes of the status, kept while the model serves, and measured once."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from prometheus_client import REGISTRY

from kubefoundry_sdk import Object
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, PODS
from kubefoundry_sdk._api.managed_fields import applied_at
from kubefoundry_sdk._cluster.requests import path
from kubefoundry_sdk.testing import Harness, simulated
from kubefoundry_sdk.testing._harness import NAMESPACE
from support import things
from support.starting_model import PROVIDER, add_pod, harness, report_pod, seconds, serve


def measured(step: str) -> float:
    labels = {"provider": PROVIDER.name, "step": step}
    return REGISTRY.get_sample_value("kubefoundry_modeldeployment_start_step_seconds_count", labels) or 0.0


@simulated
async def test_start_is_complete_once_the_model_serves() -> None:
    before = measured("PodReady")
    async with harness() as model:
        await serve(model)

    assert model.status["start"]["pod"] == "model-0"
    assert list(seconds(model)) == ["PodCreated", "PodScheduled", "ContainersStarted", "PodReady"]
    assert seconds(model)["PodReady"] == 10
    [note] = [event.note for event in model.events if event.reason == "DeploymentReady"]
    assert note.startswith("it serves; start of pod model-0: created ") and note.endswith(", ready 10s")
    assert measured("PodReady") == before + 1


@simulated
async def test_steps_alone_cause_no_write() -> None:
    async with harness() as model:
        await model.create(things.SPEC)
        add_pod(model)
        await model.advance(10)
        writes = len(model.writes)
        report_pod(model, is_ready=False)
        await model.advance(100)
        report_pod(model, is_ready=True)
        await model.annotate({"example.com/of-a-user": "causes a reconcile"})
        silent = len(model.writes)
        await model.upstream({"ready": 1})

    assert silent == writes
    assert len(model.writes) == writes + 1
    assert seconds(model)["PodReady"] == 100


@simulated
async def test_awaited_step_is_reported_with_the_next_write() -> None:
    async with harness() as model:
        await model.create(things.SPEC)
        created = model.status.get("start")
        add_pod(model)
        await model.advance(20)
        live = model.get(PODS, "model-0")
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}
        model._send(
            "PUT",
            path(PODS, NAMESPACE, "model-0") + "/status",
            {**live, "status": {"phase": "Pending", "conditions": [condition]}},
            manager="scheduler",
        )
        await model.advance(5)

    assert created is None
    waiting = model.status["start"]["steps"][-1]
    assert waiting == {"name": "PodScheduled", "since": live["metadata"]["creationTimestamp"]}


@pytest.mark.parametrize(
    "time", ["9999-12-31T23:59:59Z", "2126-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00"]
)
@simulated
async def test_model_serves_whatever_times_its_pod_reports(time: str) -> None:
    async with harness() as model:
        await model.create(things.SPEC)
        add_pod(model)
        await model.advance(3)
        report_pod(model, is_ready=True, now=time)
        await model.upstream({"ready": 1})
        writes = len(model.writes)
        await model.advance(600)

    assert model.status["phase"] == "Running"
    assert all((value or 0) < 60 for value in seconds(model).values())
    assert len(model.writes) == writes
    assert {write.code for write in model.writes} <= {200, 201}


@simulated
async def test_start_is_kept_while_the_model_serves_and_no_longer() -> None:
    async with harness() as model:
        await serve(model)
        started = model.status["start"]
        model._send("DELETE", path(PODS, NAMESPACE, "model-0"))
        await model.advance(1000)
        add_pod(model, "model-1")
        report_pod(model, is_ready=True, name="model-1")
        await model.upstream({"ready": 2})
        kept = model.status["start"]
        await model.upstream({"ready": 0})
        stopped = model.status.get("start")
        await model.advance(1000)
        await model.upstream({"ready": 1})

    assert kept == started
    assert stopped is None
    # No apply of ours started these pods.
    assert "start" not in model.status
    assert model.status["phase"] == "Running"


@simulated
async def test_edit_of_a_model_is_a_start_of_its_new_pods() -> None:
    before = measured("PodReady")
    async with harness() as model:
        await serve(model)
        await model.advance(1000)
        await model.edit({"image": "example.com/engine:2"})
        add_pod(model, "model-1")
        await model.advance(30)
        report_pod(model, is_ready=True, name="model-1")
        await model.advance(1)
        await model.upstream({"ready": 1, "observedGeneration": 2})

    assert model.status["observedGeneration"] == 2
    assert model.status["start"]["pod"] == "model-1"
    assert measured("PodReady") == before + 2


@simulated
async def test_edit_that_starts_no_pod_keeps_the_start() -> None:
    before = measured("PodReady")
    async with harness() as model:
        await serve(model)
        started = model.status["start"]
        await model.advance(1000)
        await model.edit({"scaling": {"replicas": 2}})
        await model.upstream({"ready": 1, "observedGeneration": 2})

    assert model.status["observedGeneration"] == 2
    assert model.status["start"] == started
    assert measured("PodReady") == before + 1


@simulated
async def test_upgrade_writes_nothing_for_a_model_that_serves() -> None:
    earlier = replace(PROVIDER, pods=None)
    async with Harness(earlier, things.crd()) as model:
        await serve(model)
        writes = len(model.writes)
        await model.restart(PROVIDER)
        await model.advance(1000)
        add_pod(model, "model-1")
        report_pod(model, is_ready=True, name="model-1")
        await model.advance(10)
        silent = len(model.writes)
        await model.upstream({"ready": 2})

    assert silent == writes
    assert len(model.writes) == writes + 1
    # This process has not seen the start, and a pod of today is no part of it.
    assert "start" not in model.status


@simulated
async def test_new_process_does_not_take_an_outage_for_a_start() -> None:
    async with harness() as model:
        await serve(model)
        await model.advance(1000)
        await model.upstream({"ready": 0})
        await model.restart()
        add_pod(model, "model-1")
        report_pod(model, is_ready=True, name="model-1")
        await model.upstream({"ready": 1})

    assert model.status["phase"] == "Running"
    assert "start" not in model.status


@simulated
async def test_new_process_goes_on_with_a_start() -> None:
    async with harness() as model:
        await model.create(things.SPEC)
        add_pod(model)
        await model.restart()
        await model.advance(600)
        report_pod(model, is_ready=True)
        await model.upstream({"ready": 1})

    assert sum(value or 0 for value in seconds(model).values()) >= 600


@simulated
async def test_forged_start_is_corrected() -> None:
    forged = {"pod": "forged", "steps": [{"name": "PodReady", "seconds": 1}]}
    async with harness() as model:
        await serve(model)
        url = path(MODEL_DEPLOYMENTS, NAMESPACE, model.name) + "/status"
        body = {**model.model, "status": {**model.status, "start": forged}}
        model._send("PUT", url, body, manager="somebody")
        await model.advance(60)

    assert "start" not in model.status
    assert model.status["phase"] == "Running"


@simulated
async def test_model_runs_with_a_crd_that_lacks_the_field() -> None:
    before = measured("PodReady")
    async with harness() as model:
        crd = without_start(model)
        await model.install(crd)
        await serve(model)
        await model.upstream({"ready": 2})

    assert model.status["phase"] == "Running"
    assert "start" not in model.status
    assert [write.code for write in model.writes].count(500) == 1
    assert measured("PodReady") == before + 1


def without_start(model: Harness) -> Object:
    from support.admission import crd_of_deployments

    crd: Object = crd_of_deployments()
    for version in crd["spec"]["versions"]:
        del version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["start"]
    return crd


@simulated
async def test_pods_that_cannot_be_listed_have_no_start() -> None:
    async with Harness(replace(PROVIDER, pods=None), things.crd()) as model:
        await serve(model)

    assert model.status["phase"] == "Running"
    assert "start" not in model.status


def test_applies_have_times_of_the_api_server() -> None:
    entry = {"manager": "m", "operation": "Apply", "time": "2026-03-01T12:00:00Z"}

    assert applied_at({"metadata": {"managedFields": [entry]}}, "m") == entry["time"]
    assert datetime.fromisoformat(entry["time"]).tzinfo is not None
