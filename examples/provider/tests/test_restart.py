"""A restart of the provider, and the deletion of a model, on an API server in memory."""

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
