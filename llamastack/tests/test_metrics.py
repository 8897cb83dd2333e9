"""Tests the metric of external providers."""

from __future__ import annotations

from typing import Any

from kubefoundry_llamastack.metrics import ProviderGauges

Object = dict[str, Any]


def distribution(namespace: str, *rows: Object) -> Object:
    return {"metadata": {"namespace": namespace}, "status": {"externalProviderStatus": list(rows)}}


def test_providers_are_counted_by_mode_and_readiness() -> None:
    ready, failing = {"mode": "Sidecar", "ready": True}, {"mode": "Sidecar", "ready": False}
    objects = [
        distribution("a", ready, failing, {"mode": "Inline", "ready": True}),
        distribution("a", ready),
        distribution("b", {}),
        {"metadata": {"namespace": "c"}},
    ]

    [family] = ProviderGauges(lambda: objects).collect()

    counts = {tuple(sample.labels.values()): sample.value for sample in family.samples}
    assert counts == {
        ("a", "Inline", "true"): 1,
        ("a", "Sidecar", "false"): 1,
        ("a", "Sidecar", "true"): 2,
        ("b", "Inline", "false"): 1,
    }
