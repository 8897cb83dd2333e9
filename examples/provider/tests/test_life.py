"""A model's life: the provider with the real runtime, on an API server in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kubefoundry_sdk.testing import Harness, simulated
from kubefoundry_widgets.provider import provider

CRD: dict[str, Any] = yaml.safe_load((Path(__file__).resolve().parents[1] / "widgets.crd.yaml").read_text())
WIDGETS = provider({"vllm": "example.com/vllm:1"})
GPU: dict[str, Any] = {
    "model": {"id": "org/model"},
    "engine": {"type": "vllm"},
    "resources": {"gpu": {"count": 1}},
}


@simulated
async def test_model_serves_edit_only_once_upstream_reports() -> None:
    async with Harness(WIDGETS, CRD) as harness:
        await harness.create(GPU)
        assert harness.status["phase"] == "Pending"

        await harness.upstream({"state": "Serving", "ready": 1})
        assert harness.status["phase"] == "Running"
        assert harness.condition("Ready")["observedGeneration"] == 1

        await harness.edit({"scaling": {"replicas": 2}})
        assert harness.upstream_object["spec"]["replicas"] == 2
        # The upstream has not written a status since the edit, so its old one proves nothing about the edit.
        assert harness.condition("Ready")["status"] == "True"
        assert harness.condition("Ready")["observedGeneration"] == 1

        await harness.restart()
        assert harness.condition("Ready")["observedGeneration"] == 1

        await harness.upstream({"state": "Serving", "ready": 2})
        assert harness.condition("Ready")["observedGeneration"] == 2

        await harness.delete()
        assert not harness.model
        assert not harness.upstream_object
