"""The example provider's four functions, as docs/writing-a-provider.md has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given

from kubefoundry_sdk.provider.contract import Schema, UnsupportedSchema
from kubefoundry_sdk.provider.reconcile import compatibility
from kubefoundry_sdk.testing.generated import deployment, specs
from kubefoundry_sdk.testing.structural import violations
from kubefoundry_selector.cel import compile
from kubefoundry_widgets.provider import API_VERSION, probe, provider
from support.deployments import CPU, DISAGGREGATED, GPU

ROOT = Path(__file__).resolve().parents[2]
CRD: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "provider" / "widgets.crd.yaml").read_text())
SCHEMA = Schema(API_VERSION)
WIDGETS = provider({"vllm": "example.com/vllm:1"})


def test_its_crd_is_supported() -> None:
    assert probe(CRD) == SCHEMA


def test_a_crd_without_a_needed_field_is_not() -> None:
    crd = yaml.safe_load(yaml.safe_dump(CRD))
    del crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["env"]

    assert probe(crd) == UnsupportedSchema(("spec.env",))


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param(CPU, "Widgets does not support llamacpp engine", id="engine"),
        pytest.param(DISAGGREGATED, "Widgets does not support disaggregated mode", id="mode"),
        pytest.param(
            {**GPU, "nodeSelector": {"zone": "a"}},
            "Widgets has no place for nodeSelector: remove it",
            id="field",
        ),
    ],
)
def test_what_it_refuses(spec: dict[str, Any], problem: str) -> None:
    assert problem in compatibility.check(WIDGETS, deployment(spec), SCHEMA).problems


@given(spec=specs(engines=["vllm"], modes=["aggregated"], provider=None))
def test_what_it_takes_fits_the_crd(spec: dict[str, Any]) -> None:
    model = deployment(spec)
    if compatibility.check(WIDGETS, model, SCHEMA).problems:
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
        ({"state": "Broken"}, 1, "Failed", "Failed"),
        ({"state": "Dancing"}, 1, "Deploying", "Unknown"),
        ({"state": "Serving", "ready": 0}, 0, "Pending", "ScaledToZero"),
    ],
)
def test_what_it_sees(status: dict[str, Any] | None, replicas: int, phase: str, reason: str) -> None:
    model = deployment({**GPU, "scaling": {"replicas": replicas}})

    seen = WIDGETS.observe(model, {"status": status} if status else {})

    assert (seen.phase, seen.reason) == (phase, reason)


def test_its_selection_rules_can_be_read() -> None:
    for rule in WIDGETS.selection_rules:
        compile(rule.condition)
