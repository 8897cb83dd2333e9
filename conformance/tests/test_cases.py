"""The cases that the checks of a process need."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_conformance.cases import Cases
from kubefoundry_conformance.check import Skipped
from kubefoundry_conformance.cluster.deployments import Deployments


def with_cases(*phases: str) -> Deployments:
    """Return the deployments of checks whose cases have these phases."""
    statuses: list[Any] = [
        {"name": phase, "status": {"state": phase}, "expect": {"phase": phase, "reason": "Progressing"}}
        for phase in phases
    ]
    deployments = Deployments.__new__(type("Checked", (Deployments,), {}))
    deployments.cases = Cases.model_validate({"specs": {"one": {}}, "statuses": statuses})
    return deployments


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        (("Running", "Deploying", "Failed"), "Failed"),
        (("Pending", "Deploying", "Running"), "Deploying"),
        (("Pending", "Running"), "Pending"),
    ],
)
def test_case_without_service_needs_no_failure(phases: tuple[str, ...], expected: str) -> None:
    assert with_cases(*phases).case_that_serves_nothing().expect.phase == expected


def test_cases_that_always_serve_are_not_enough() -> None:
    with pytest.raises(Skipped, match="no case is Pending"):
        with_cases("Running").case_that_serves_nothing()
