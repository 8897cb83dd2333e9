"""Tests that a server is polled only through a Service that leads to pods."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_llamastack.observe.services import leads_to_pods


@pytest.mark.parametrize(
    ("spec", "leads"),
    [
        ({"type": "ClusterIP", "selector": {"app": "llama-stack"}}, True),
        ({"type": "ExternalName", "externalName": "metadata.internal"}, False),
        ({"type": "ExternalName", "selector": {"app": "llama-stack"}}, False),
        ({"type": "ClusterIP", "selector": {}}, False),
        ({"type": "ClusterIP"}, False),
        ({}, False),
    ],
)
def test_service_leads_to_pods_only_with_selector(spec: dict[str, Any], leads: bool) -> None:
    assert leads_to_pods({"spec": spec}) is leads
