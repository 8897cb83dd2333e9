"""The provider's four functions, its manifest, and a restart and a deletion in the real runtime."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from kubefoundry_sdk import Schema, UnsupportedSchema, manifest
from kubefoundry_sdk.spec import incompatibilities
from kubefoundry_sdk.testing import Harness, deployment, simulated, specs, violations
from kubefoundry_widgets.provider import probe, provider

HERE = Path(__file__).resolve().parents[1]
CRD: dict[str, Any] = yaml.safe_load((HERE / "widgets.crd.yaml").read_text())
SCHEMA = Schema("example.com/v1")
WIDGETS = provider({"vllm": "example.com/vllm:1"})
GPU: dict[str, Any] = {
    "model": {"id": "org/model"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}


def test_crd_is_supported() -> None:
    assert probe(CRD) == SCHEMA


def test_crd_without_needed_field_is_unsupported() -> None:
    crd = copy.deepcopy(CRD)
    del crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["env"]

    assert probe(crd) == UnsupportedSchema(("spec.env",))


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param(
            {**GPU, "engine": {"type": "llamacpp"}}, "Widgets does not support llamacpp engine", id="engine"
        ),
        pytest.param(
            {"engine": {"type": "vllm"}, "serving": {"mode": "disaggregated"}},
            "Widgets does not support disaggregated mode",
            id="mode",
        ),
        pytest.param(
            {**GPU, "nodeSelector": {"zone": "a"}},
            "Widgets has no place for nodeSelector: remove it",
            id="field",
        ),
    ],
)
def test_unsupported_spec_is_refused(spec: dict[str, Any], problem: str) -> None:
    assert problem in incompatibilities(WIDGETS, deployment(spec), SCHEMA)


@settings(deadline=None)
@given(spec=specs(engines=["vllm"], modes=["aggregated"], provider=None))
def test_supported_spec_fits_the_crd(spec: dict[str, Any]) -> None:
    model = deployment(spec)
    if incompatibilities(WIDGETS, model, SCHEMA):
        return

    widget = WIDGETS.render(model, SCHEMA).main

    schema = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert violations(schema, widget) == []


@pytest.mark.parametrize(
    ("status", "replicas", "phase", "reason"),
    [
        (None, 1, "Pending", "Progressing"),
        ({"state": "Starting"}, 1, "Deploying", "Progressing"),
        ({"state": "Serving", "ready": 1}, 1, "Running", "DeploymentReady"),
        ({"state": "Serving", "ready": 0}, 1, "Deploying", "Progressing"),
        ({"state": "Broken"}, 1, "Failed", "Failed"),
        ({"state": "Dancing"}, 1, "Deploying", "Unknown"),
        ({"state": ["Serving"], "ready": "many"}, 1, "Pending", "Progressing"),
        ({"state": "Serving", "ready": 0}, 0, "Pending", "ScaledToZero"),
    ],
)
def test_status_is_observed(status: dict[str, Any] | None, replicas: int, phase: str, reason: str) -> None:
    model = deployment({**GPU, "scaling": {"replicas": replicas}})

    observation = WIDGETS.observe(model, {"status": status} if status else {})

    assert (observation.phase, observation.reason) == (phase, reason)


def test_manifest_is_generated_from_provider() -> None:
    documents = yaml.safe_load_all((HERE / "manifest.yaml").read_text())
    stored = [document for document in documents if document]
    [image] = [
        document["spec"]["template"]["spec"]["containers"][0]["image"]
        for document in stored
        if document["kind"] == "Deployment"
    ]

    assert stored == manifest(WIDGETS, image), (
        "kubefoundry provider manifest widgets --image … > manifest.yaml"
    )


@simulated
async def test_restart_rewrites_nothing() -> None:
    async with Harness(WIDGETS, CRD) as harness:
        await harness.create(GPU)
        before = harness.upstream_object

        await harness.restart()

        assert before
        assert harness.upstream_object == before


@simulated
async def test_deleted_model_leaves_no_upstream_object() -> None:
    async with Harness(WIDGETS, CRD) as harness:
        await harness.create(GPU)
        assert harness.upstream_object

        await harness.delete()

        assert not harness.model
        assert not harness.upstream_object
