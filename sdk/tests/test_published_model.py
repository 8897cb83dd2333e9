"""`status.endpoint.model` and `apis`: the name and the APIs with which the pods serve that answer now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk import Deployment, Object, Observation, Rendered, Schema
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._cluster.requests import path
from kubefoundry_sdk.testing import Harness, simulated
from kubefoundry_sdk.testing._harness import NAMESPACE
from support import things

NAMED: dict[str, Any] = {**things.SPEC, "model": {"id": "org/model", "servedName": "first"}}


def render(deployment: Deployment, schema: Schema) -> Rendered:
    rendered = things.render(deployment, schema)
    rendered.main["spec"]["name"] = deployment.spec.served_name
    return rendered


def observe(deployment: Deployment, thing: Object) -> Observation:
    seen = things.observe(deployment, thing)
    name = deployment.spec.served_name or ""
    endpoint = replace(seen.endpoint, model=name, apis=(f"api-of-{name}",))
    seen = replace(seen, endpoint=endpoint, updating="updating" in (thing.get("status") or {}))
    if deployment.spec.scaling.replicas:
        return seen
    return replace(seen, phase="Pending", reason="ScaledToZero", message="Scaled to zero")


@simulated
async def test_model_is_named_as_pods_of_reported_generation_serve_it() -> None:
    provider = replace(things.PROVIDER, render=render, observe=observe)
    async with Harness(provider, things.crd(name={"type": "string"})) as harness:
        await harness.create(NAMED)
        await harness.upstream({"ready": 1})
        before = harness.status["endpoint"]
        await harness.edit({"model": {"id": "org/model", "servedName": "second"}})
        await harness.upstream({"ready": 1, "updating": True})
        during = harness.status["endpoint"]
        forged = {**harness.status, "endpoint": {**during, "model": "forged", "apis": ["forged"]}}
        url = path(MODEL_DEPLOYMENTS, NAMESPACE, harness.name) + "/status"
        harness._send("PUT", url, {**harness.model, "status": forged}, manager="somebody")
        await harness.advance(60)
        corrected = harness.status["endpoint"]
        await harness.upstream({"ready": 1})

    assert before == {"service": "model", "port": 80, "model": "first", "apis": ["api-of-first"]}
    assert during == corrected == before
    assert harness.status["endpoint"] == {**before, "model": "second", "apis": ["api-of-second"]}


@simulated
async def test_generation_from_before_zero_replicas_never_comes_back() -> None:
    provider = replace(things.PROVIDER, render=render, observe=observe)
    async with Harness(provider, things.crd(name={"type": "string"})) as harness:
        await harness.create(NAMED)
        await harness.upstream({"ready": 1})
        await harness.edit({"scaling": {"replicas": 0}})
        await harness.upstream({"ready": 0})
        empty = harness.status
        await harness.edit({"scaling": {"replicas": 2}, "model": {"id": "org/model", "servedName": "second"}})
        await harness.upstream({"ready": 0, "updating": True})
        await harness.upstream({"ready": 1, "updating": True})
        starting = harness.status
        await harness.upstream({"ready": 2})

    assert (empty["phase"], empty["observedGeneration"]) == ("Pending", 2)
    assert (starting["phase"], starting["observedGeneration"]) == ("Running", 0)
    assert not {"model", "apis"} & starting["endpoint"].keys()
    assert harness.status["observedGeneration"] == 3
    assert harness.status["endpoint"]["model"] == "second"


def observe_name(deployment: Deployment, thing: Object) -> Observation:
    seen = things.observe(deployment, thing)
    return replace(seen, endpoint=replace(seen.endpoint, model=deployment.spec.served_name or ""))


@pytest.mark.parametrize(
    ("model_id", "published"),
    [
        ("org/:x", {"model": ":x"}),
        ("org/@x", {"model": "@x"}),
        pytest.param("org/-x", {"model": "-x"}, id="created before core refused it"),
        ("org/", {}),
        ("/", {}),
    ],
)
@simulated
async def test_name_from_an_unusual_id_is_published(model_id: str, published: dict[str, str]) -> None:
    async with Harness(replace(things.PROVIDER, observe=observe_name), things.crd()) as harness:
        await harness.create({**things.SPEC, "model": {"id": model_id}})
        await harness.upstream({"ready": 1})

    assert harness.status["phase"] == "Running"
    assert harness.status["endpoint"] == {"service": "model", "port": 80, **published}
