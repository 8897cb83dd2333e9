"""Fields that lost their owner are applied again before a change drops them."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import pytest

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.reclaim import (
    may_leave_fields,
    reclaimed,
    release_operations,
    with_earlier_record,
)

MANAGER = "direct-provider"
CONTAINER = {
    "name": "engine",
    "image": "vllm:1",
    "args": ["serve", "m"],
    "env": [{"name": "A", "value": "a"}, {"name": "B", "value": "b"}],
    "ports": [{"containerPort": 8000}, {"containerPort": 9000}],
    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
}
POD = {
    "containers": [CONTAINER],
    "nodeSelector": {"zone": "a", "pool": "b"},
    "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    "serviceAccountName": "m",
}
LIST_KEYS = {
    "containers": ("name",),
    "env": ("name",),
    "ports": ("containerPort", "protocol"),
    "volumes": ("name",),
}


def dressed(pod: Object) -> Object:
    """Return a Deployment with that pod, and with the record of it."""
    obj: Object = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "m", "namespace": "ns", "labels": {"a": "b"}, "annotations": {}},
        "spec": {"replicas": 1, "template": {"spec": copy.deepcopy(pod)}},
    }
    record = manifest.Record(manifest.content(obj), {}, "", None)
    obj["metadata"]["annotations"] = {names.APPLIED_ANNOTATION: manifest.pack(record)}
    return obj


def fields_of(value: Any, key: str = "") -> Any:
    """Return fieldsV1 as the API server records them for an apply of the value."""
    if isinstance(value, dict):
        return {f"f:{name}": fields_of(below, name) for name, below in value.items()}
    if isinstance(value, list) and key in LIST_KEYS:
        items = {}
        for item in value:
            marks = {name: item.get(name, "TCP") for name in LIST_KEYS[key]}
            items[f"k:{json.dumps(marks)}"] = {".": {}, **fields_of(item)}
        return items
    return {}


def owned(obj: Object) -> Any:
    content = manifest.body(obj) | {"metadata": {"labels": obj["metadata"]["labels"]}}
    return {
        key: fields for key, fields in fields_of(content).items() if key not in ("f:apiVersion", "f:kind")
    }


def live(pod: Object, fields: Any) -> Object:
    obj = dressed(pod)
    entry = {"manager": MANAGER, "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": fields}
    obj["metadata"] |= {"uid": "1", "resourceVersion": "1", "managedFields": [entry]}
    return obj


def fewer(pod: Object, chance: Random) -> Object:
    """Drop one or more fields or items, never a key of a list."""
    smaller = copy.deepcopy(pod)
    [engine] = smaller["containers"]
    drops = [
        lambda: smaller["nodeSelector"].pop("zone"),
        lambda: smaller.pop("nodeSelector"),
        lambda: smaller.pop("volumes"),
        lambda: smaller.pop("serviceAccountName"),
        lambda: engine["env"].pop(),
        lambda: engine["ports"].pop(),
        lambda: engine["resources"]["limits"].pop("cpu"),
        lambda: engine.pop("resources"),
    ]
    for at in sorted(chance.sample(range(len(drops)), chance.randint(1, 3))):
        try:
            drops[at]()
        except KeyError:
            # A larger drop took it along.
            continue
    return smaller


def cut(fields: Any, chance: Random) -> Any:
    return {key: cut(below, chance) for key, below in fields.items() if chance.random() < 0.5}


@pytest.mark.parametrize("seed", range(50))
def test_owned_fields_are_dropped_by_one_apply(seed: int) -> None:
    standing = live(POD, owned(dressed(POD)))

    assert not may_leave_fields(dressed(fewer(POD, Random(seed))), standing, MANAGER)


@pytest.mark.parametrize("seed", range(50))
def test_fields_that_remain_are_applied_again_with_their_values(seed: int) -> None:
    standing = live(POD, {"f:spec": {"f:replicas": {}}})
    desired = dressed(fewer(POD, Random(seed)))

    earlier = reclaimed(desired, standing)

    assert earlier is not None
    assert earlier["spec"] == standing["spec"]
    record = earlier["metadata"]["annotations"][names.APPLIED_ANNOTATION]
    assert record == standing["metadata"]["annotations"][names.APPLIED_ANNOTATION]


@pytest.mark.parametrize("seed", range(50))
def test_fields_that_are_gone_are_not_applied_again(seed: int) -> None:
    desired = dressed(fewer(POD, Random(seed)))
    standing = live(POD, {"f:spec": {"f:replicas": {}}})
    stored = with_earlier_record(desired, standing)

    assert reclaimed(desired, stored) is None


@pytest.mark.parametrize("seed", range(200))
def test_suspicion_follows_from_the_owners_of_dropped_fields(seed: int) -> None:
    chance = Random(seed)
    smaller = fewer(POD, chance)
    fields = cut(owned(dressed(POD)), chance)
    whole = owned(dressed(POD))

    suspicious = may_leave_fields(dressed(smaller), live(POD, fields), MANAGER)

    dropped = leaves(whole) - leaves(owned(dressed(smaller)))
    assert suspicious == bool(dropped - leaves(fields, cut_ones=whole))


def leaves(fields: Any, path: tuple[str, ...] = (), cut_ones: Any = None) -> set[tuple[str, ...]]:
    """Return the paths without fields below; those that `cut_ones` does not have as such are none."""
    below = {key: sub for key, sub in fields.items() if key != "."}
    if not below:
        ends = cut_ones is None or not set(cut_ones) - {"."}
        return {path} if ends else set()
    paths: set[tuple[str, ...]] = set()
    for key, sub in below.items():
        paths |= leaves(sub, (*path, key), None if cut_ones is None else cut_ones[key])
    return paths


@pytest.mark.parametrize(
    "change",
    [
        {"containers": [CONTAINER | {"args": ["serve", "other"]}]},
        {"containers": [CONTAINER | {"image": "vllm:2"}]},
        {"serviceAccountName": "other"},
    ],
)
def test_changed_values_need_no_owner(change: Object) -> None:
    standing = live(POD, {"f:spec": {"f:replicas": {}}})

    assert not may_leave_fields(dressed(POD | change), standing, MANAGER)


GROUPS: Object = {
    "groups": [
        {"groupName": "gpu", "template": {"containers": [CONTAINER]}},
        {"groupName": "cpu", "template": {"containers": [CONTAINER]}},
    ]
}
"""A list without `name`, which has one owner as a whole."""


def test_edit_in_a_list_that_has_one_owner_is_not_suspicious() -> None:
    changed = copy.deepcopy(GROUPS)
    for group in changed["groups"]:
        group["template"]["containers"][0]["image"] = "vllm:2"
    standing = live(GROUPS, owned(dressed({**GROUPS, "groups": []})))

    assert not may_leave_fields(dressed(changed), standing, MANAGER)


@pytest.mark.parametrize("seed", range(50))
def test_reclaim_changes_nothing_else(seed: int) -> None:
    smaller = fewer(POD, Random(seed))
    [engine] = smaller["containers"]
    smaller["tolerations"] = [{"key": "new", "operator": "Exists"}]
    engine |= {
        "image": "vllm:2",
        "args": ["serve", "other"],
        "env": [*engine["env"], {"name": "C", "value": "c"}],
    }
    stored = live(united(POD, smaller), {"f:spec": {"f:replicas": {}}})
    stored["metadata"]["annotations"] = dressed(POD)["metadata"]["annotations"]

    earlier = reclaimed(dressed(smaller), stored)

    assert earlier is not None
    assert in_order(earlier["spec"]) == in_order(stored["spec"])


def test_dropped_list_with_many_live_items_is_reclaimed() -> None:
    """A user who may edit the object adds items, so that they are too many to be matched."""
    applied = POD | {"tolerations": [{"key": "a", "operator": "Exists"}]}
    crowded = applied | {"tolerations": [*applied["tolerations"], *({"key": f"k{i}"} for i in range(5_000))]}
    stored = live(crowded, {"f:spec": {"f:replicas": {}}})
    stored["metadata"]["annotations"] = dressed(applied)["metadata"]["annotations"]

    earlier = reclaimed(dressed(POD), stored)

    assert may_leave_fields(dressed(POD), stored, MANAGER)
    assert earlier is not None
    assert earlier["spec"]["template"]["spec"]["tolerations"] == crowded["tolerations"]


def test_reclaim_takes_no_value_from_the_record() -> None:
    """Anybody may write the record: the values that it has are not those that serve."""
    forged: Object = copy.deepcopy(POD)
    forged["containers"][0] |= {"args": ["forged"], "ports": [{"containerPort": 1}, {"hostPort": 2}]}
    forged["tolerations"] = [{"key": "forged"}]
    stored = live(POD | {"tolerations": [{"key": "real"}]}, {"f:spec": {"f:replicas": {}}})
    stored["metadata"]["annotations"] = dressed(forged)["metadata"]["annotations"]
    smaller = {key: value for key, value in POD.items() if key != "nodeSelector"}

    earlier = reclaimed(dressed(smaller), stored)

    assert earlier is not None
    assert earlier["spec"] == stored["spec"] | dressed(POD)["spec"]


def test_reclaim_of_a_default_changes_nothing() -> None:
    """To the API server, a field that is dropped and has its default value is still there."""
    stored = live(POD | {"ports": [{"containerPort": 1, "protocol": "TCP"}]}, {"f:spec": {"f:replicas": {}}})
    desired = dressed(POD | {"ports": [{"containerPort": 1}]})

    earlier = reclaimed(desired, stored)

    assert earlier is not None
    assert earlier["spec"] == stored["spec"]


def shared_after_a_reset(pod: Object, fields: Any) -> Object:
    """Return an object with that pod that the manager has applied since a reset of `managedFields`."""
    obj = live(pod, owned(dressed(pod)))
    reset = {
        "manager": "before-first-apply",
        "operation": "Update",
        "apiVersion": "apps/v1",
        "fieldsV1": fields,
    }
    obj["metadata"]["managedFields"].append(reset)
    return obj


@pytest.mark.parametrize("seed", range(50))
def test_dropped_field_is_suspicious_after_a_reset(seed: int) -> None:
    standing = shared_after_a_reset(POD, {})

    assert may_leave_fields(dressed(fewer(POD, Random(seed))), standing, MANAGER)
    assert not may_leave_fields(dressed(POD), standing, MANAGER)


def test_owner_after_a_reset_keeps_only_fields_of_others() -> None:
    theirs: Any = {"f:spec": {"f:paused": {}, "f:template": {"f:spec": {"f:hostIPC": {}}}}}
    both = copy.deepcopy(owned(dressed(POD)))
    both["f:spec"]["f:paused"] = {}
    both["f:spec"]["f:template"]["f:spec"]["f:nodeSelector"]["."] = {}
    both["f:spec"]["f:template"]["f:spec"]["f:hostIPC"] = {}
    stored = shared_after_a_reset(POD, both)
    own = stored["metadata"]["managedFields"][0]

    entries = release_operations(stored, MANAGER)[-1]["value"]

    assert [entry["fieldsV1"] for entry in entries] == [own["fieldsV1"], theirs]


def test_owner_after_a_reset_goes_if_all_is_ours() -> None:
    stored = shared_after_a_reset(POD, owned(dressed(POD)))

    assert release_operations(stored, MANAGER)[-1]["value"] == stored["metadata"]["managedFields"][:1]


def test_object_without_a_reset_keeps_its_owners() -> None:
    assert release_operations(live(POD, owned(dressed(POD))), MANAGER) == []


def united(one: Any, other: Any) -> Any:
    """Return what is stored if all of `other` is applied, and nothing of `one` is removed."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {
            key: united(one.get(key, other.get(key)), other.get(key, one.get(key))) for key in one | other
        }
    if isinstance(one, list) and isinstance(other, list) and isinstance(one[0], dict):
        mark = next(key for key in ("name", "containerPort", "key") if key in one[0])
        items = {item[mark]: item for item in one}
        for item in other:
            items[item[mark]] = united(items.get(item[mark], item), item)
        return list(items.values())
    return other


def in_order(value: Any) -> Any:
    """Return the value with its lists in order: an apply may add an item at another place."""
    if isinstance(value, dict):
        return {key: in_order(below) for key, below in value.items()}
    return sorted(map(in_order, value), key=json.dumps) if isinstance(value, list) else value
