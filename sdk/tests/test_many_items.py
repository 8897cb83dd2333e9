"""A list of many items is read once, not once for each of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubefoundry_sdk.api import managed_fields

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
def test_a_writer_is_found_among_any_number_of_fields() -> None:
    fields: dict[str, Any] = {f"f:k{number}": {} for number in range(20_000)}
    theirs = {"manager": "theirs", "operation": "Apply", "fieldsV1": {"f:spec": {"f:other": fields}}}
    paths = [f"spec.items.i{number}" for number in range(5_000)]

    # each field with each path would be minutes
    assert managed_fields.writer({"metadata": {"managedFields": [theirs]}}, paths, "ours") is None
    assert (
        managed_fields.writer({"metadata": {"managedFields": [theirs]}}, [*paths, "spec.other.k7.x"], "ours")
        == "theirs"
    )
