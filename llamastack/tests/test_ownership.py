"""Tests whether an apply would change something, and the managed fields after a take-over."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubefoundry_llamastack import ownership
from kubefoundry_llamastack.names import MANAGER, OLD_MANAGER

Object = dict[str, Any]

WANTED: Object = {
    "apiVersion": "v1",
    "kind": "Thing",
    "metadata": {"name": "a", "labels": {"x": "1"}},
    "spec": {
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
        "limits": {"cpu": "0.5"},
        "peers": [{"a": 1}],
        "empty": "",
    },
}
FIELDS: Object = {
    "f:metadata": {"f:labels": {"f:x": {}}},
    "f:spec": {
        "f:ports": {
            'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}}
        },
        "f:limits": {"f:cpu": {}},
        "f:peers": {},
    },
}


def live() -> Object:
    """Return the object as the API server has it after an apply of WANTED."""
    live_object = copy.deepcopy(WANTED)
    live_object["metadata"]["managedFields"] = [
        {"manager": MANAGER, "operation": "Apply", "fieldsV1": copy.deepcopy(FIELDS)}
    ]
    live_object["spec"]["limits"]["cpu"] = "500m"
    live_object["spec"]["ports"][0]["targetPort"] = 80
    live_object["spec"]["peers"][0]["filled"] = "in"
    live_object["spec"]["type"] = "Default"
    del live_object["spec"]["empty"]
    return live_object


def fields(obj: Object) -> Object:
    fields_v1: Object = obj["metadata"]["managedFields"][0]["fieldsV1"]
    return fields_v1


def value(obj: Object) -> None:
    obj["spec"]["ports"][0]["name"] = "other"


def taken(obj: Object) -> None:
    del fields(obj)["f:spec"]["f:limits"]


def leftover(obj: Object) -> None:
    fields(obj)["f:spec"]["f:gone"] = {}


def longer(obj: Object) -> None:
    obj["spec"]["peers"].append({"a": 2})


class Counted(dict[str, Any]):
    """Counts the reads of its values."""

    reads = 0

    def get(self, key: str, default: Any = None) -> Any:
        Counted.reads += 1
        return super().get(key, default)


def test_differs_takes_linear_time_with_many_items() -> None:
    """A CR with very many providers must not delay another CR."""
    many = 300
    ports = [Counted(port=number, name=f"p-{number}") for number in range(many)]
    fields: Object = {f'k:{{"port":{number}}}': {"f:port": {}, "f:name": {}} for number in range(many)}
    entry = {"manager": MANAGER, "operation": "Apply", "fieldsV1": {"f:spec": {"f:ports": fields}}}
    live_object = {"metadata": {"managedFields": [entry]}, "spec": {"ports": ports}}

    assert not ownership.differs({"metadata": {}, "spec": {"ports": ports}}, live_object)
    assert Counted.reads <= 10 * many


def second_port(obj: Object) -> None:
    obj["spec"]["ports"].append({"name": "b", "port": 81, "protocol": "TCP"})
    fields(obj)["f:spec"]["f:ports"]['k:{"port":81,"protocol":"TCP"}'] = {"f:name": {}}


def label(obj: Object) -> None:
    obj["metadata"]["labels"]["x"] = "2"


def unknown(obj: Object) -> None:
    obj["metadata"]["managedFields"] = []


def added(obj: Object) -> None:
    obj["metadata"]["labels"]["theirs"] = "y"
    obj["spec"]["theirs"] = 1


@pytest.mark.parametrize("change", [value, taken, leftover, longer, second_port, label, unknown])
def test_differs_detects_each_difference(change: Any) -> None:
    obj = live()
    change(obj)

    assert ownership.differs(WANTED, obj)


def test_differs_ignores_defaults_and_foreign_fields() -> None:
    obj = live()
    added(obj)

    assert not ownership.differs(WANTED, obj)


CPU: Object = {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 70}}}
MEMORY: Object = {"type": "Resource", "resource": {"name": "memory", "target": {"averageUtilization": 80}}}


@pytest.mark.parametrize(
    ("stored", "is_different"),
    [
        ([CPU, MEMORY], False),
        ([MEMORY, CPU], False),
        ([MEMORY], True),
        ([MEMORY, CPU, CPU], True),
        ([MEMORY, MEMORY], True),
        ([MEMORY, {**CPU, "resource": {**CPU["resource"], "target": {"averageUtilization": 71}}}], True),
    ],
)
def test_order_of_an_autoscalers_metrics_is_no_difference(stored: list[Object], is_different: bool) -> None:
    """Kubernetes 1.26 returns that of the CPU last."""
    entry = {"manager": MANAGER, "operation": "Apply", "fieldsV1": {"f:spec": {"f:metrics": {}}}}
    live_object = {"metadata": {"managedFields": [entry]}, "spec": {"metrics": stored}}

    differs = ownership.differs({"metadata": {}, "spec": {"metrics": [CPU, MEMORY]}}, live_object)

    assert differs == is_different


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({"ownerReferences": [{"uid": "u", "controller": True, "kind": "LlamaStackDistribution"}]}, "ours"),
        ({"labels": {"app.kubernetes.io/managed-by": "llama-stack-operator"}}, "ours"),
        ({}, "foreign"),
        (
            {
                "ownerReferences": [
                    {
                        "uid": "v",
                        "controller": True,
                        "kind": "LlamaStackDistribution",
                        "apiVersion": "llamastack.io/v1alpha1",
                    }
                ]
            },
            "leaving",
        ),
        ({"ownerReferences": [{"uid": "v", "controller": True, "kind": "Other"}]}, "foreign"),
        (
            {
                "ownerReferences": [
                    {
                        "uid": "v",
                        "controller": True,
                        "kind": "LlamaStackDistribution",
                        "apiVersion": "nowhere.example/v1",
                    }
                ]
            },
            "foreign",
        ),
        (
            {
                "deletionTimestamp": "now",
                "ownerReferences": [{"uid": "u", "controller": True, "kind": "LlamaStackDistribution"}],
            },
            "leaving",
        ),
    ],
    ids=["owner", "owner lost", "stranger", "earlier CR", "another's", "of another group", "being deleted"],
)
def test_ownership_of_object(meta: Object, expected: str) -> None:
    assert ownership.ownership({"metadata": meta}, "u") == expected


def test_take_over_moves_only_fields_of_old_operator() -> None:
    entries = [
        {"manager": OLD_MANAGER, "operation": "Update", "fieldsV1": {"f:spec": {"f:a": {}}}},
        {"manager": "chat", "operation": "Apply", "fieldsV1": {"f:spec": {"f:b": {"f:c": {}}}}},
        {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:d": {}}}},
        {"manager": OLD_MANAGER, "operation": "Update", "subresource": "status", "fieldsV1": {}},
    ]
    obj = {"metadata": {"managedFields": entries}, "spec": {"strategy": {"rollingUpdate": {}}}}

    after = ownership.transfer_ownership(obj, "chat", "apps/v1")

    assert after[:2] == [entries[2], entries[3]]
    assert (after[2]["manager"], after[2]["operation"]) == (MANAGER, "Apply")
    assert after[2]["fieldsV1"]["f:spec"] == {
        "f:a": {},
        "f:b": {"f:c": {}},
        "f:strategy": {"f:rollingUpdate": {"f:maxSurge": {}, "f:maxUnavailable": {}}},
    }
