"""Whose value is at a path, read from managed fields."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._api.managed_fields import writer

ENTRIES: list[dict[str, Any]] = [
    {
        "manager": "ours",
        "operation": "Apply",
        "time": "2026-01-01T00:00:09Z",
        "fieldsV1": {"f:spec": {"f:a": {}, "f:list": {}, "f:count": {}}},
    },
    {
        "manager": "operator",
        "operation": "Update",
        "time": "2026-01-01T00:00:05Z",
        "fieldsV1": {
            "f:metadata": {
                "f:finalizers": {".": {}, 'v:"x"': {}},
                "f:labels": {"f:example.com/a.b": {}},
                "f:ownerReferences": {".": {}, 'k:{"uid":"1"}': {}},
            },
            "f:spec": {"f:groups": {}, "f:count": {}},
        },
    },
    {
        "manager": "admin",
        "operation": "Update",
        "time": "2026-01-01T00:00:07Z",
        "fieldsV1": {
            "f:spec": {
                ".": {},
                "f:count": {},
                "f:containers": {'k:{"name":"m"}': {".": {}, "f:image": {}}},
            }
        },
    },
    {
        "manager": "operator",
        "operation": "Update",
        "subresource": "status",
        "time": "2026-01-01T00:00:08Z",
        "fieldsV1": {"f:status": {"f:state": {}}},
    },
]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        pytest.param(["spec.containers[m].image"], "admin", id="a field of a named item"),
        pytest.param(["spec.groups[0].name"], "operator", id="inside a list that is owned as a whole"),
        pytest.param(["spec.containers"], "admin", id="above what is owned"),
        pytest.param(["metadata.labels.example.com/a.b"], "operator", id="a key with dots"),
        pytest.param(["metadata.ownerReferences[1]"], "operator", id="an owner"),
        pytest.param(["spec.count"], "admin", id="the latest of several"),
        pytest.param(["spec.nothing", "spec.containers[m].image"], "admin", id="one path of several"),
        pytest.param(["spec.a"], None, id="ours alone"),
        pytest.param(["spec.group"], None, id="the beginning of a name"),
        pytest.param(["spec.nothing"], None, id="removed"),
        pytest.param(["status.state"], None, id="of a subresource"),
        pytest.param([], None, id="nothing"),
    ],
)
def test_writer_is_the_latest_owner_of_the_field(paths: list[str], expected: str | None) -> None:
    assert writer({"metadata": {"managedFields": ENTRIES}}, paths, "ours") == expected


def test_object_without_managed_fields_has_no_writer() -> None:
    assert writer({"metadata": {}}, ["spec"], "ours") is None
