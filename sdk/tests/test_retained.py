"""What is repeated while nothing new is known is about the generation that it was about."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._provider.reconcile.report import Report
from kubefoundry_sdk._provider.reconcile.retained import report_unvalidated

MANAGER = "example-provider"


@pytest.mark.parametrize("observed", [15, 16, 0, None])
@pytest.mark.parametrize("status", ["True", "False"])
def test_last_report_keeps_its_generation(status: str, observed: int | None) -> None:
    """Another provider still serves, and may have written `observedGeneration` for the newest edit."""
    before = {
        "type": "ProviderCompatible",
        "status": status,
        "reason": "Unsupported",
        "message": "of generation 15",
        "observedGeneration": 15,
    }
    key = 'k:{"type":"ProviderCompatible"}'
    entry = {
        "manager": MANAGER,
        "operation": "Apply",
        "subresource": "status",
        "fieldsV1": {"f:status": {"f:conditions": {key: {"f:status": {}}}}},
    }
    live: dict[str, Any] = {
        "metadata": {"name": "m", "namespace": "n", "generation": 16, "managedFields": [entry]},
        "status": {
            "observedGeneration": observed,
            "conditions": [before],
            "provider": {"name": "example", "resourceName": "m"},
        },
    }
    report = Report(16)

    report_unvalidated(live, report, MANAGER)

    written = [(item["type"], item["status"], item["observedGeneration"]) for item in report.conditions()]
    assert written == [("ProviderCompatible", status, 15)]
