"""What the long run with faults compares in the end."""

from __future__ import annotations

from typing import Any

import pytest

from support.chaos.state import upstream

OTHERS = ("spec.rayClusterConfig.workerGroupSpecs[*].replicas",)


def ray_service(**group: Any) -> dict[str, Any]:
    group = {"groupName": "gpu", "replicas": 1, "maxReplicas": 1000, **group}
    head = {"rayStartParams": {"num-cpus": "0"}}
    return {
        "kind": "RayService",
        "metadata": {"name": "m", "labels": {"app": "m"}},
        "spec": {"rayClusterConfig": {"headGroupSpec": head, "workerGroupSpecs": [group]}},
    }


@pytest.mark.parametrize(
    ("group", "alike"),
    [
        pytest.param({"replicas": 2}, True, id="workers that the object began with"),
        pytest.param({"maxReplicas": 2}, False, id="most workers"),
        pytest.param({"groupName": "other"}, False, id="name"),
        pytest.param({"template": {"spec": {"containers": []}}}, False, id="something more"),
    ],
)
def test_state_comparison_sees_each_difference(group: dict[str, Any], alike: bool) -> None:
    assert (upstream(ray_service(), OTHERS) == upstream(ray_service(**group), OTHERS)) is alike
