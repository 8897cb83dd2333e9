"""Whether an apply would change something, and what a take-over makes of managed fields."""

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
    """As the API server has it after an apply of WANTED."""
    made = copy.deepcopy(WANTED)
    made["metadata"]["managedFields"] = [
        {"manager": MANAGER, "operation": "Apply", "fieldsV1": copy.deepcopy(FIELDS)}
    ]
    made["spec"]["limits"]["cpu"] = "500m"
    made["spec"]["ports"][0]["targetPort"] = 80
    made["spec"]["peers"][0]["filled"] = "in"
    made["spec"]["type"] = "Default"
    del made["spec"]["empty"]
    return made


def fields(obj: Object) -> Object:
    found: Object = obj["metadata"]["managedFields"][0]["fieldsV1"]
    return found


def value(obj: Object) -> None:
    obj["spec"]["ports"][0]["name"] = "other"


def taken(obj: Object) -> None:
    del fields(obj)["f:spec"]["f:limits"]


def leftover(obj: Object) -> None:
    fields(obj)["f:spec"]["f:gone"] = {}


def longer(obj: Object) -> None:
    obj["spec"]["peers"].append({"a": 2})


class Counted(dict[str, Any]):
    """Counts how often one of them is asked for a value."""

    asked = 0

    def get(self, key: str, default: Any = None) -> Any:
        Counted.asked += 1
        return super().get(key, default)


def test_many_items_are_each_looked_at_a_few_times() -> None:
    """A CR with very many providers holds up no other."""
    many = 300
    ports = [Counted(port=number, name=f"p-{number}") for number in range(many)]
    fields: Object = {f'k:{{"port":{number}}}': {"f:port": {}, "f:name": {}} for number in range(many)}
    entry = {"manager": MANAGER, "operation": "Apply", "fieldsV1": {"f:spec": {"f:ports": fields}}}
    standing = {"metadata": {"managedFields": [entry]}, "spec": {"ports": ports}}

    assert not ownership.differs({"metadata": {}, "spec": {"ports": ports}}, standing)
    assert Counted.asked <= 10 * many


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
def test_a_difference_is_seen(change: Any) -> None:
    obj = live()
    change(obj)

    assert ownership.differs(WANTED, obj)


def test_what_the_api_server_fills_in_and_others_add_is_none() -> None:
    obj = live()
    added(obj)

    assert not ownership.differs(WANTED, obj)


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
def test_whose_object_it_is(meta: Object, expected: str) -> None:
    assert ownership.ownership({"metadata": meta}, "u") == expected


def test_a_take_over_moves_what_the_old_operator_owned_and_nothing_else() -> None:
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
