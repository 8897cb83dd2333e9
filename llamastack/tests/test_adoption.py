"""Tests what stays of a Deployment that the existing operator made."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from kubefoundry_llamastack import workload
from kubefoundry_llamastack.names import MANAGER
from kubefoundry_llamastack.render.request import Distribution, PodInputs, Settings

Make = Callable[..., Distribution]
Object = dict[str, Any]

FOUND = PodInputs(image="example.com/stack:1", tool="chat-provider-tool-0")


def fields_of(value: Any) -> Object:
    """Return the fields of an apply of this value."""
    if isinstance(value, dict):
        return {f"f:{key}": fields_of(below) for key, below in value.items()}
    if isinstance(value, list) and all(isinstance(item, dict) and "name" in item for item in value):
        return {f'k:{{"name":"{item["name"]}"}}': {".": {}, **fields_of(item)} for item in value}
    return {}


@pytest.mark.parametrize("other_change", [False, True])
def test_scaling_after_adoption_keeps_leftovers(make: Make, other_change: bool) -> None:
    """Without a leftover, the template would be another one, and all pods would be replaced."""
    cr = make(storage={})
    live = copy.deepcopy(workload.decide(cr, FOUND, Settings(), "inputs", None, None).body)
    [container] = live["spec"]["template"]["spec"]["containers"]
    for probe in workload.PROBES:
        del container[probe]
    container["env"].append({"name": "LEFTOVER", "value": "1"})
    left_template = copy.deepcopy(live["spec"]["template"])
    entry: Object = {"manager": "chat", "operation": "Apply", "fieldsV1": {"f:spec": fields_of(live["spec"])}}
    live["metadata"]["managedFields"] = [entry]
    taken = workload.decide(cr, FOUND, Settings(), "inputs", live, None)
    live["metadata"]["managedFields"] = [{**entry, "manager": MANAGER}]
    scaled = make({"replicas": 2}, storage={})

    decision = workload.decide(
        scaled, FOUND, Settings(), "others" if other_change else "inputs", live, taken.record
    )

    assert taken.record.adopted
    assert (decision.write, decision.body["spec"]["replicas"]) == (True, 2)
    assert decision.record.adopted is not other_change
    assert (decision.body["spec"]["template"] == left_template) is not other_change
    live["spec"]["replicas"] = 2
    again = workload.decide(scaled, FOUND, Settings(), "inputs", live, taken.record)
    assert (again.write, again.record) == (False, taken.record)
