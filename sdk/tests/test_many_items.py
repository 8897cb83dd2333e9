"""A list of many items is read once, not once for each of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubefoundry_sdk._api import managed_fields, names
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.additions import added
from kubefoundry_sdk._provider.write.reclaim import may_leave_fields, reclaimed

MANY = 300


class Counted(dict[str, Any]):
    """Counts how often one of them is asked for a value."""

    asked = 0

    def get(self, key: str, default: Any = None) -> Any:
        Counted.asked += 1
        return super().get(key, default)


def test_many_items_of_a_list_map_are_each_looked_at_once() -> None:
    rows = [Counted(name=f"n-{number}", phase="Ready", other="theirs") for number in range(MANY)]
    marks = [f"k:{json.dumps({'name': row['name']})}" for row in rows]
    Counted.asked = 0

    projected = managed_fields.project(rows, {mark: {"f:name": {}, "f:phase": {}} for mark in marks})

    assert projected == [{"name": row["name"], "phase": "Ready"} for row in rows]
    assert Counted.asked == MANY


@pytest.mark.timeout(60)
def test_writer_is_found_among_any_number_of_fields() -> None:
    fields: dict[str, Any] = {f"f:k{number}": {} for number in range(20_000)}
    theirs = {"manager": "theirs", "operation": "Apply", "fieldsV1": {"f:spec": {"f:other": fields}}}
    paths = [f"spec.items.i{number}" for number in range(5_000)]

    # each field with each path would be minutes
    assert managed_fields.writer({"metadata": {"managedFields": [theirs]}}, paths, "ours") is None
    assert (
        managed_fields.writer({"metadata": {"managedFields": [theirs]}}, [*paths, "spec.other.k7.x"], "ours")
        == "theirs"
    )


ITEMS = 8_000
"""An object of the API server has room for that many with an owner each. Each with each would be minutes."""


def deployment(**pod: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": "m", "annotations": {}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta,
        "spec": {"template": {"spec": pod}},
    }


def owned_by(manager: str, **pod: Any) -> list[dict[str, Any]]:
    fields = {"f:spec": {"f:template": {"f:spec": {f"f:{key}": below for key, below in pod.items()}}}}
    return [{"manager": manager, "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": fields}]


def keys(*names: str) -> dict[str, Any]:
    """Return the owned fields of that many items."""
    below: dict[str, Any] = {f"f:{key}": {} for key in (*names, "operator")}
    return {f"k:{json.dumps({key: str(number) for key in names})}": below for number in range(ITEMS)}


@pytest.mark.timeout(60)
def test_additions_are_found_among_any_number_of_items() -> None:
    variables = [{"name": str(number), "value": "x"} for number in range(ITEMS)]
    live = deployment(initContainers=variables)
    made_up: dict[str, Any] = {
        f"k:{json.dumps({f'n{number}': 1, 'name': 'x'})}": {} for number in range(ITEMS)
    }
    live["metadata"]["managedFields"] = owned_by("theirs", initContainers={**keys("name"), **made_up})

    found = added(deployment(initContainers=[{"name": "mine"}]), live, "ours")

    assert len(found) == ITEMS


@pytest.mark.timeout(60)
@pytest.mark.parametrize("key", ["key", "name"])
def test_dropped_items_are_found_among_any_number(key: str) -> None:
    live = deployment(tolerations=[{key: str(number), "operator": "Exists"} for number in range(ITEMS)])
    before = deployment(tolerations=[{key: str(number), "operator": "Exists"} for number in range(ITEMS)])
    record = manifest.Record(before, {}, "", None)
    live["metadata"]["annotations"] = {names.APPLIED_ANNOTATION: manifest.pack(record)}
    live["metadata"]["managedFields"] = owned_by("ours", tolerations=keys(key))

    assert not may_leave_fields(deployment(), live, "ours")
    # Too many of them without a name: they count as one value.
    assert bool(reclaimed(deployment(tolerations=[]), live)) == (key == "name")
