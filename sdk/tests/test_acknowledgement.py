"""When an upstream object's status speaks of what was applied last."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubefoundry_sdk.provider.contract import Endpoint, Observation, Replicas
from kubefoundry_sdk.provider.health.acknowledgement import NOT_YET, generation_reported, left
from kubefoundry_sdk.runtime.wait import Wait

SERVES = Observation("Running", "DeploymentReady", "it serves", Replicas(1, 1, 1), Endpoint("m", 80))


def live(generation: int, observed: object = None, uid: str = "u") -> dict[str, Any]:
    meta = {"name": "m", "namespace": "n", "uid": uid, "generation": generation}
    status = {"state": "x"} if observed is None else {"observedGeneration": observed}
    return {"kind": "Thing", "metadata": meta, "status": status}


def test_an_object_that_is_behind_is_waited_for_and_then_settles() -> None:
    settling = Wait()

    assert left(settling, live(2, 1), SERVES, 3.0, 10.0) == NOT_YET
    assert left(settling, live(2, 2), SERVES, 3.0, 20.0) == 3.0
    assert left(settling, live(2, 2), SERVES, 3.0, 22.0) == 1.0
    assert left(settling, live(2, 2), SERVES, 3.0, 99.0) == 0.0


@pytest.mark.parametrize("other", [live(3, 3), live(2, 2, uid="other")], ids=["edit", "object"])
def test_each_generation_of_each_object_settles_by_itself(other: dict[str, Any]) -> None:
    settling = Wait()
    left(settling, live(2, 2), SERVES, 3.0, 10.0)

    assert left(settling, other, SERVES, 3.0, 99.0) == 3.0


@pytest.mark.parametrize(
    "seen", [replace(SERVES, updating=True), replace(SERVES, update_failed=True)], ids=["goes on", "failed"]
)
def test_while_an_earlier_spec_serves_the_new_one_is_waited_for(seen: Observation) -> None:
    settling = Wait()
    left(settling, live(2, 2), SERVES, 3.0, 10.0)

    assert left(settling, live(2, 2), seen, 3.0, 99.0) == NOT_YET


def test_an_upstream_that_tells_no_generation_is_believed() -> None:
    assert left(Wait(), live(7), SERVES, 0.0, 1.0) == 0.0


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, 5),
        ({"observedGeneration": 4}, 4),
        ({"observedGeneration": 9}, 5),
        ({"observedGeneration": "4"}, 5),
        ({"observedGeneration": 5, "conditions": [{"type": "Ready", "observedGeneration": 3}]}, 3),
    ],
)
def test_the_generation_that_was_reported(status: dict[str, Any], expected: int) -> None:
    assert generation_reported(status, 5) == expected
