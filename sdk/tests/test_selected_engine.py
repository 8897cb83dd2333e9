"""A spec without an engine: the provider renders the selected one, keeps it, and restores it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk import Capabilities, Deployment, Rendered, Schema
from kubefoundry_sdk._api import names, reasons
from kubefoundry_sdk._api.engine_args import ENGINES
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Kind
from kubefoundry_sdk._cluster.requests import path
from kubefoundry_sdk.testing import Harness, simulated
from kubefoundry_sdk.testing._harness import NAMESPACE
from kubefoundry_sdk.testing._server.requests import MERGE_PATCH
from support.things import PROVIDER, crd, render

SPEC: dict[str, Any] = {
    "model": {"id": "org/model"},
    "image": "example.com/engine:1",
    "resources": {"gpu": {"count": 1}},
}
URL = path(MODEL_DEPLOYMENTS, NAMESPACE, "model")
APPLY = "application/apply-patch+yaml"


def render_engine(deployment: Deployment, schema: Schema) -> Rendered:
    rendered = render(deployment, schema)
    rendered.main["spec"]["engine"] = deployment.spec.engine.type
    return rendered


THINGS = replace(
    PROVIDER,
    capabilities=Capabilities(ENGINES, ("aggregated",), cpu_support=True, gpu_support=True),
    render=render_engine,
)
CRD = crd(engine={"type": "string"})


async def serving(harness: Harness, spec: dict[str, Any]) -> None:
    await harness.create(spec)
    await harness.upstream({"ready": 1})
    assert harness.status["phase"] == "Running"


def select(harness: Harness, engine: str | None) -> None:
    """Write the selection of core or a selector, with another engine or none."""
    provider = {"name": THINGS.name, "selectedReason": reasons.EXPLICIT_SELECTION}
    live = harness.model
    status: dict[str, Any] = {"provider": {**provider, **({"engine": engine} if engine else {})}}
    status["conditions"] = [
        item for item in live["status"]["conditions"] if item["type"] in ("Validated", "ProviderSelected")
    ]
    body = {"apiVersion": names.API_VERSION, "kind": names.MODEL_DEPLOYMENT, "status": status}
    body["metadata"] = {"name": "model", "namespace": NAMESPACE}
    harness._send("PATCH", f"{URL}/status", body, APPLY, names.CORE_MANAGER, force="true")


@simulated
async def test_selected_engine_is_rendered_and_reported() -> None:
    async with Harness(THINGS, CRD) as harness:
        await serving(harness, SPEC)

        assert harness.upstream_object["spec"]["engine"] == "vllm"
        assert harness.status["provider"]["engine"] == "vllm"
        assert "engine" not in harness.model["spec"] or "type" not in harness.model["spec"]["engine"]


@pytest.mark.parametrize("edit", [{"scaling": {"replicas": 2}}, {"image": "example.com/engine:2"}])
@simulated
async def test_engine_stays_after_an_edit_and_a_restart(edit: dict[str, Any]) -> None:
    async with Harness(THINGS, CRD) as harness:
        await serving(harness, SPEC)
        uid = harness.upstream_object["metadata"]["uid"]
        other = Capabilities(("sglang",), ("aggregated",), cpu_support=True, gpu_support=True)

        await harness.edit(edit)
        await harness.restart(replace(THINGS, capabilities=other))

        assert harness.upstream_object["metadata"]["uid"] == uid
        assert harness.upstream_object["spec"]["engine"] == "vllm"


@simulated
async def test_provider_waits_until_an_engine_is_selected() -> None:
    async with Harness(THINGS, CRD) as harness:
        await harness.create({**SPEC, "engine": {"type": "sglang"}, "provider": {"name": "things"}})
        await harness.delete()
        harness._send(
            "POST",
            path(MODEL_DEPLOYMENTS, NAMESPACE),
            {
                "apiVersion": names.API_VERSION,
                "kind": names.MODEL_DEPLOYMENT,
                "metadata": {"name": "model", "namespace": NAMESPACE},
                "spec": {**SPEC, "provider": {"name": "things"}},
            },
        )
        written = len(harness.writes)
        status = {
            "provider": {"name": "things"},
            "conditions": [
                {
                    "type": "Validated",
                    "status": "True",
                    "reason": "ValidationPassed",
                    "message": "",
                    "observedGeneration": 1,
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
        }
        harness._send("PATCH", f"{URL}/status", {"status": status}, MERGE_PATCH)

        await harness.advance(60)

        assert harness.writes[written:] == []
        assert harness.upstream_object == {}


@simulated
async def test_emptied_status_keeps_the_engine_that_serves() -> None:
    async with Harness(THINGS, CRD) as harness:
        await serving(harness, SPEC)
        select(harness, "trtllm")
        await harness.advance(30)
        await harness.upstream({"ready": 1})
        assert harness.upstream_object["spec"]["engine"] == "trtllm"
        uid = harness.upstream_object["metadata"]["uid"]

        harness._send("PATCH", f"{URL}/status", {"status": None}, MERGE_PATCH)
        await harness.edit({"scaling": {"replicas": 1}})

        assert harness.status["provider"]["engine"] == "trtllm"
        assert harness.upstream_object["metadata"]["uid"] == uid


@pytest.mark.parametrize("engine", ["trtllm", "llamacpp"])
@simulated
async def test_removing_the_engine_from_the_spec_keeps_it(engine: str) -> None:
    async with Harness(THINGS, CRD) as harness:
        await serving(harness, {**SPEC, "engine": {"type": engine}})
        before = harness.upstream_object["metadata"]

        await harness.edit({"engine": {"type": None}})
        await harness.advance(30)

        assert harness.status["provider"]["engine"] == engine
        assert harness.upstream_object["metadata"]["uid"] == before["uid"]
        assert harness.upstream_object["spec"]["engine"] == engine
        assert harness.condition("Ready")["status"] == "True"
        assert harness.status["observedGeneration"] == 2


@simulated
async def test_engine_in_the_spec_takes_precedence() -> None:
    async with Harness(THINGS, CRD) as harness:
        await serving(harness, SPEC)
        uid = harness.upstream_object["metadata"]["uid"]

        await harness.edit({"engine": {"type": "vllm"}})
        assert harness.upstream_object["metadata"]["uid"] == uid
        assert "engine" not in harness.status["provider"]

        await harness.edit({"engine": {"type": "sglang"}})
        await harness.advance(30)
        assert harness.upstream_object["metadata"]["uid"] != uid
        assert harness.upstream_object["spec"]["engine"] == "sglang"


@simulated
async def test_another_selected_engine_recreates() -> None:
    async with Harness(THINGS, CRD) as harness:
        await serving(harness, SPEC)
        uid = harness.upstream_object["metadata"]["uid"]

        select(harness, "sglang")
        await harness.advance(30)

        assert harness.upstream_object["metadata"]["uid"] != uid
        assert harness.upstream_object["spec"]["engine"] == "sglang"
        assert harness.condition("Ready")["status"] == "False"


@simulated
async def test_edit_that_the_selected_engine_cannot_run_is_reported() -> None:
    async with Harness(THINGS, CRD) as harness:
        await serving(harness, SPEC)

        await harness.edit({"resources": {"gpu": {"count": 0}}})

        compatible = harness.condition("ProviderCompatible")
        assert (compatible["status"], compatible["reason"]) == ("False", "Unsupported")
        assert compatible["message"] == (
            "vLLM engine requires GPU (set resources.gpu.count > 0). Engine vllm was selected for this model and "
            "stays: revert that edit, or set engine.type to another engine"
        )
        assert harness.status["phase"] == "Running"
        assert harness.condition("Ready")["observedGeneration"] == 1


@simulated
async def test_provider_without_a_fitting_engine_says_so() -> None:
    only_vllm = replace(
        THINGS, capabilities=Capabilities(("vllm",), ("aggregated",), cpu_support=True, gpu_support=True)
    )
    async with Harness(only_vllm, CRD) as harness:
        await harness.create({"model": {"id": "org/model"}})

        assert harness.condition("ProviderCompatible")["message"] == (
            "Things has no engine for this spec: vllm: vLLM engine requires GPU (set resources.gpu.count > 0). "
            "Change the spec, or name another provider"
        )
        assert harness.upstream_object == {}


def select_provider(harness: Harness, name: str, engine: str | None) -> None:
    """Write the choice of a provider, as core or a selector."""
    apply_provider(harness, {"name": name, **({"engine": engine} if engine else {})}, names.SELECTOR_MANAGER)


def apply_provider(harness: Harness, fields: dict[str, str], manager: str) -> None:
    """Apply fields of `status.provider`."""
    body = {"apiVersion": names.API_VERSION, "kind": names.MODEL_DEPLOYMENT, "status": {"provider": fields}}
    body["metadata"] = {"name": "model", "namespace": NAMESPACE}
    harness._send("PATCH", f"{URL}/status", body, APPLY, manager, force="true")


@pytest.mark.parametrize("engine", [None, "vllm", "trtllm"], ids=["none", "preferred", "another"])
@simulated
async def test_returned_model_keeps_its_engine(engine: str | None) -> None:
    async with Harness(THINGS, CRD) as harness:
        await serving(harness, {**SPEC, "engine": {"type": "sglang"}})
        await harness.edit({"engine": None})
        uid = harness.upstream_object["metadata"]["uid"]
        select_provider(harness, "another", engine)
        await harness.advance(5)

        select_provider(harness, THINGS.name, engine)
        await harness.advance(60)

        assert harness.upstream_object["metadata"]["uid"] == uid
        assert harness.upstream_object["spec"]["engine"] == "sglang"
        assert harness.status["provider"]["engine"] == "sglang"


@pytest.mark.parametrize("engine", ENGINES)
@simulated
async def test_holder_reports_its_engine_to_another_provider(engine: str) -> None:
    """One edit names another provider and drops `engine.type`."""
    async with Harness(THINGS, CRD) as harness:
        await serving(harness, {**SPEC, "engine": {"type": engine}})
        select_provider(harness, "another", None)

        harness._send("PATCH", URL, {"spec": {"engine": None}}, MERGE_PATCH)
        await harness.advance(5)

        assert harness.status["provider"]["name"] == "another"
        assert harness.status["provider"]["engine"] == engine
        assert harness.upstream_object["spec"]["engine"] == engine


@pytest.mark.parametrize("engine", ["vllm", "trtllm"])
@simulated
async def test_restart_in_a_return_keeps_the_engine(engine: str) -> None:
    async with Harness(THINGS, CRD) as harness:
        await serving(harness, {**SPEC, "engine": {"type": "sglang"}})
        await harness.edit({"engine": None})
        uid = harness.upstream_object["metadata"]["uid"]
        select_provider(harness, "another", engine)
        await harness.advance(5)
        apply_provider(harness, {"engine": engine}, names.provider_manager("another"))

        select_provider(harness, THINGS.name, None)
        await harness.restart()
        await harness.advance(60)

        assert harness.upstream_object["metadata"]["uid"] == uid
        assert harness.upstream_object["spec"]["engine"] == "sglang"
        assert harness.status["provider"]["engine"] == "sglang"


THING_LIST = path(Kind("example.com", "v1", "things", "Thing"), NAMESPACE)


@pytest.mark.parametrize("engine", ENGINES)
@simulated
async def test_restored_object_keeps_its_engine(engine: str) -> None:
    """A backup has the model without its status, and the object with its record."""
    async with Harness(THINGS, CRD) as harness:
        await serving(harness, {**SPEC, "engine": {"type": engine}})
        await harness.edit({"engine": None})
        await harness.advance(30)
        saved = harness.upstream_object
        await harness.delete()
        await harness.advance(30)
        kept = {key: saved["metadata"][key] for key in ("name", "namespace", "labels", "annotations")}
        harness._send("POST", THING_LIST, {**saved, "metadata": kept})

        await harness.create(SPEC)
        await harness.advance(30)

        assert harness.upstream_object["spec"]["engine"] == engine
        assert harness.condition("ResourceCreated")["status"] == "True"
        assert harness.status["provider"]["engine"] == engine
