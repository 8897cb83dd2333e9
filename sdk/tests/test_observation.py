"""A provider observes the applied spec, not the newest one."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._api import names
from kubefoundry_sdk._provider.reconcile.observation import as_applied, reported_stale
from kubefoundry_sdk._provider.write import manifest
from support.plans import SPEC


def live(**spec: Any) -> dict[str, Any]:
    meta = {"name": "m", "namespace": "n", "uid": "u", "generation": 2}
    return {"metadata": meta, "spec": {**SPEC, **spec}}


def upstream(**spec: Any) -> dict[str, Any]:
    record = manifest.Record({"metadata": {}}, {**SPEC, **spec}, "", None)
    return {"metadata": {"annotations": {names.APPLIED_ANNOTATION: manifest.pack(record)}}}


@pytest.mark.parametrize(
    ("desired", "standing", "replicas"),
    [
        pytest.param(live(scaling={"replicas": 3}), upstream(scaling={"replicas": 2}), 2, id="refused"),
        pytest.param(live(scaling={"replicas": "x"}), upstream(scaling={"replicas": 2}), 2, id="unreadable"),
        pytest.param(
            live(scaling={"replicas": 3}), upstream(scaling={"replicas": "x"}), 3, id="unreadable record"
        ),
        pytest.param(live(scaling={"replicas": 3}), {"metadata": {}}, 3, id="no record"),
    ],
)
def test_observation_uses_the_applied_spec(
    desired: dict[str, Any], standing: dict[str, Any], replicas: int
) -> None:
    seen = as_applied(desired, manifest.applied(standing))

    assert seen is not None
    assert (seen.spec.scaling.replicas, seen.uid) == (replicas, "u")


def test_nothing_is_observed_of_what_nobody_can_read() -> None:
    assert as_applied(live(scaling={"replicas": "x"}), None) is None


@pytest.mark.parametrize(
    ("manager", "status", "expected"),
    [("widgets-provider", "True", True), ("widgets-provider", "False", False), ("somebody", "True", False)],
)
def test_silent_operator_is_judged_by_our_own_reports(manager: str, status: str, expected: bool) -> None:
    fields: dict[str, Any] = {
        "f:status": {"f:conditions": {'k:{"type":"StaleStatus"}': {".": {}, "f:status": {}}}}
    }
    obj = {
        "metadata": {
            "managedFields": [
                {"manager": manager, "operation": "Apply", "subresource": "status", "fieldsV1": fields}
            ]
        },
        "status": {"conditions": [{"type": "StaleStatus", "status": status}]},
    }

    assert reported_stale(obj, "widgets-provider") is expected
