"""What a manager owns in a status, and when a write is needed."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._api import managed_fields
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS
from kubefoundry_sdk._runtime.status import keep, same
from kubefoundry_sdk._runtime.store import Store
from support.wire import ok, wire

READY = {
    "type": "Ready",
    "status": "True",
    "reason": "DeploymentReady",
    "message": "m",
    "observedGeneration": 1,
}
FIELDS = {
    "f:status": {
        "f:phase": {},
        "f:provider": {"f:resourceName": {}},
        "f:conditions": {
            'k:{"type":"Ready"}': {
                ".": {},
                "f:type": {},
                "f:status": {},
                "f:reason": {},
                "f:message": {},
                "f:observedGeneration": {},
            }
        },
    }
}
OWNED = {"phase": "Running", "provider": {"resourceName": "m"}, "conditions": [READY]}


def live(
    status: dict[str, Any], fields: dict[str, Any] | None = None, operation: str = "Apply"
) -> dict[str, Any]:
    entry = {"manager": "me", "operation": operation, "subresource": "status", "fieldsV1": fields or FIELDS}
    others = {"manager": "other", "operation": "Apply", "subresource": "status", "fieldsV1": {}}
    return {"metadata": {"managedFields": [others, entry]}, "status": status}


STATUS = {
    "phase": "Running",
    "provider": {"name": "theirs", "resourceName": "m"},
    "conditions": [{"type": "Validated", "status": "True"}, READY],
}


@pytest.mark.parametrize(
    ("obj", "desired", "expected"),
    [
        pytest.param(live(STATUS), OWNED, True, id="all as wanted"),
        pytest.param(live({**STATUS, "phase": "Failed"}), OWNED, False, id="a value differs"),
        pytest.param(live(STATUS), {**OWNED, "message": "new"}, False, id="a field more"),
        pytest.param(
            live(STATUS), {"phase": "Running", "conditions": [READY]}, False, id="a field to release"
        ),
        pytest.param(live(STATUS), {}, False, id="all to release"),
        pytest.param(live(STATUS, operation="Update"), OWNED, False, id="not applied but updated"),
        pytest.param({"metadata": {}, "status": STATUS}, {}, True, id="nothing owned, nothing wanted"),
        pytest.param(
            live({**STATUS, "conditions": [{**READY, "message": "theirs now"}]}),
            OWNED,
            False,
            id="a condition differs",
        ),
    ],
)
def test_owned_status_differs_only_in_owned_fields(
    obj: dict[str, Any], desired: dict[str, Any], expected: bool
) -> None:
    assert same(obj, desired, "me") is expected


@pytest.mark.parametrize(
    ("desired", "expected"),
    [
        pytest.param({"provider": {"resourceName": "m"}}, True, id="only shares are left to drop"),
        pytest.param({"provider": {"resourceName": "other"}}, False, id="something else differs"),
        pytest.param({}, False, id="something of its own is to be released"),
    ],
)
def test_dropping_shares_is_worth_no_write_of_its_own(desired: dict[str, Any], expected: bool) -> None:
    assert same(live(STATUS), {**desired, "conditions": []}, "me", {"phase", "Ready"}) is expected


def test_compaction_keeps_ones_own_fields_and_the_others_names() -> None:
    managed = live(STATUS)["metadata"]["managedFields"]

    kept = managed_fields.compact(managed, frozenset({"me"}))

    assert kept == [
        {"manager": "other", "operation": "Apply", "subresource": "status"},
        {"manager": "me", "operation": "Apply", "subresource": "status", "fieldsV1": FIELDS},
    ]
    assert managed_fields.managers({"metadata": {"managedFields": kept}}, "status") == {"me", "other"}


async def test_condition_that_others_state_is_kept_without_a_write() -> None:
    """Another manager forced all of a condition but its type: the rest of it is not ours to send."""
    fields: dict[str, Any] = {"f:status": {"f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:type": {}}}}}
    obj = live(STATUS, fields)
    obj["metadata"] |= {"name": "m", "namespace": "n"}

    async with wire(lambda asked: ok({})) as api:
        sent = await keep(api.client, Store(), MODEL_DEPLOYMENTS, obj, manager="me")

    assert (sent, api.asked) == (False, [])
