"""When the record of an upstream object counts as lost before an edit."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._provider.reconcile.lost_record import is_lost
from kubefoundry_sdk._provider.write.apply import NOT_STORED

MANAGER = "example-provider"
REFUSED = "Engine 'm' was refused: denied by a policy"
STRIPPED = f"Engine 'm' was accepted, but annotation kubefoundry.ai/applied {NOT_STORED}"


def model(generation: int, reported: int, status: str, message: str, *, ours: bool = True) -> dict[str, Any]:
    """Return a model of which we have reported on a generation."""
    entry = {
        "manager": MANAGER if ours else "other-provider",
        "operation": "Apply",
        "subresource": "status",
        "fieldsV1": {"f:status": {"f:conditions": {'k:{"type":"ResourceCreated"}': {"f:message": {}}}}},
    }
    created = {
        "type": "ResourceCreated",
        "status": status,
        "message": message,
        "observedGeneration": reported,
    }
    meta = {"name": "m", "namespace": "n", "generation": generation, "managedFields": [entry]}
    return {"metadata": meta, "status": {"conditions": [created]}}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        pytest.param(model(1, 1, "True", ""), False, id="never edited"),
        pytest.param(model(1, 1, "False", STRIPPED), False, id="never edited, removed by admission"),
        pytest.param(model(1, 1, "False", REFUSED), False, id="never edited, refused"),
        pytest.param(model(2, 2, "True", ""), False, id="newest generation applied"),
        pytest.param(model(2, 2, "False", STRIPPED), False, id="newest generation removed by admission"),
        pytest.param(model(2, 2, "False", REFUSED), True, id="newest generation refused"),
        pytest.param(model(2, 1, "True", ""), True, id="edited"),
        pytest.param(model(2, 1, "False", STRIPPED), True, id="edited after removal by admission"),
        pytest.param(model(2, 1, "True", "", ours=False), False, id="reported by another provider"),
    ],
)
def test_record_is_lost_only_before_an_edit(live: dict[str, Any], expected: bool) -> None:
    assert is_lost(live, None, MANAGER) is expected
