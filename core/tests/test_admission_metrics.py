"""Metrics of the webhooks, on a real port."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest
from prometheus_client import REGISTRY

from support.deployments import GPU
from support.webhook_port import listening, material


def review(spec: dict[str, Any]) -> bytes:
    obj = {"metadata": {"name": "m", "namespace": "n"}, "spec": spec}
    kind = {"group": "kubefoundry.ai", "kind": "ModelDeployment"}
    return json.dumps({"request": {"uid": "u", "kind": kind, "object": obj}}).encode()


def value(name: str, /, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


@pytest.mark.parametrize(
    ("body", "code", "verdict"),
    [
        pytest.param(review(GPU), "200", "allowed", id="allowed"),
        pytest.param(review({**GPU, "scaling": {"replicas": -1}}), "200", "denied", id="denied"),
        pytest.param(b"no review", "400", None, id="malformed"),
    ],
)
async def test_review_is_counted_by_code_and_verdict(body: bytes, code: str, verdict: str | None) -> None:
    def counts() -> list[float]:
        return [
            value("controller_runtime_webhook_requests_total", webhook="/validate", code=code),
            value("controller_runtime_webhook_latency_seconds_count", webhook="/validate"),
            value("kubefoundry_admission_reviews_total", webhook="/validate", verdict="allowed"),
            value("kubefoundry_admission_reviews_total", webhook="/validate", verdict="denied"),
        ]

    before = counts()
    async with (
        listening(material()) as (url, trust, _),
        aiohttp.ClientSession() as session,
        session.post(f"{url}/validate", data=body, ssl=trust) as response,
    ):
        await response.read()

    added = [after - earlier for after, earlier in zip(counts(), before, strict=True)]
    assert added == [1, 1, int(verdict == "allowed"), int(verdict == "denied")]


async def test_unknown_paths_add_no_series() -> None:
    before = {sample.labels["webhook"] for sample in samples()}
    async with listening(material()) as (url, trust, _), aiohttp.ClientSession() as session:
        for number in range(20):
            async with session.post(f"{url}/invented-{number}", data=b"{}", ssl=trust) as response:
                assert response.status == 404

    assert {sample.labels["webhook"] for sample in samples()} == before


def samples() -> list[Any]:
    return [
        sample for metric in REGISTRY.collect() for sample in metric.samples if "webhook" in sample.labels
    ]
