"""When the record of an upstream object counts as lost before an edit."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._api.names import APPLIED_GENERATION_ANNOTATION
from kubefoundry_sdk._provider.reconcile.lost_record import is_lost
from kubefoundry_sdk._provider.write.admission import Admission

MANAGER = "example-provider"
MAIN: dict[str, Any] = {"kind": "Engine", "metadata": {"name": "m"}, "spec": {"args": ["new"]}}


def model(generation: int, reported: int, status: str, *, ours: bool = True) -> dict[str, Any]:
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
        "message": "accepted, but annotation kubefoundry.ai/applied was not stored as sent",
        "observedGeneration": reported,
    }
    meta = {"name": "m", "namespace": "n", "generation": generation, "managedFields": [entry]}
    return {"metadata": meta, "status": {"conditions": [created]}}


def engine(applied: int | None) -> dict[str, Any]:
    """Return an upstream object without the record, of which another annotation may name the applied generation."""
    annotations = {} if applied is None else {APPLIED_GENERATION_ANNOTATION: str(applied)}
    return {**MAIN, "metadata": {"name": "m", "annotations": annotations}}


@pytest.mark.parametrize(
    ("live", "applied", "expected"),
    [
        pytest.param(model(1, 1, "True"), 1, False, id="never edited"),
        pytest.param(model(1, 1, "False"), None, False, id="never edited, refused"),
        pytest.param(model(2, 2, "True"), 1, False, id="newest generation applied"),
        pytest.param(model(2, 2, "False"), 2, False, id="record of newest generation removed by admission"),
        pytest.param(model(2, 2, "False"), 1, True, id="newest generation refused"),
        pytest.param(model(2, 2, "False"), None, True, id="unknown which generation was applied"),
        pytest.param(model(2, 1, "True"), 1, True, id="edited"),
        pytest.param(model(2, 1, "False"), 1, True, id="edited after removal by admission"),
        pytest.param(model(2, 1, "True", ours=False), 1, False, id="reported by another provider"),
    ],
)
def test_record_is_lost_only_before_an_edit(
    live: dict[str, Any], applied: int | None, expected: bool
) -> None:
    assert is_lost(live, engine(applied), None, MAIN, Admission(), MANAGER) is expected


@pytest.mark.parametrize(("args", "expected"), [(["new"], False), (["old"], True)])
def test_record_is_not_lost_when_object_was_applied_before(args: list[str], expected: bool) -> None:
    """Admission removes all annotations of each apply, so only the process knows what it applied."""
    admission = Admission()
    sent = {**MAIN, "spec": {"args": args}}
    admission.note(sent, sent)

    assert is_lost(model(2, 2, "False"), engine(None), None, MAIN, admission, MANAGER) is expected
