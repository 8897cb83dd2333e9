"""The cases that the checks of a process need."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_conformance.cases import Cases
from kubefoundry_conformance.check import Skipped
from kubefoundry_conformance.cluster.deployments import case_of
from kubefoundry_conformance.functions.observing import check_unknown_words
from kubefoundry_conformance.functions.subject import Functions
from support.conformance_subjects import cases_with, of_a_crd

PREFERRED = ("Failed", "Deploying", "Pending")


def with_cases(*phases: str) -> Cases:
    """Return cases with these phases."""
    statuses: list[Any] = [
        {"name": phase, "status": {"state": phase}, "expect": {"phase": phase, "reason": "Progressing"}}
        for phase in phases
    ]
    return Cases.model_validate({"specs": {"one": {}}, "statuses": statuses})


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        (("Running", "Deploying", "Failed"), "Failed"),
        (("Pending", "Deploying", "Running"), "Deploying"),
        (("Pending", "Running"), "Pending"),
    ],
)
def test_case_without_service_needs_no_failure(phases: tuple[str, ...], expected: str) -> None:
    assert case_of(with_cases(*phases), *PREFERRED).expect.phase == expected


def test_cases_that_always_serve_are_not_enough() -> None:
    with pytest.raises(Skipped, match="no case is Failed or Deploying or Pending"):
        case_of(with_cases("Running"), *PREFERRED)


def test_unknown_word_in_item_of_list_is_checked() -> None:
    sound = of_a_crd()
    [serving] = [case for case in sound.cases.statuses if case.expect.phase == "Running"][:1]
    # The provider reads no conditions, so it does not notice the unknown word.
    status = {**(serving.status or {}), "conditions": [{"type": "Available", "status": "True"}]}
    case = serving.model_copy(update={"status": status})
    cases = cases_with(sound.cases, statuses=[case], states=["status.conditions.0.status"])

    findings = [*check_unknown_words(Functions(sound.provider, sound.crd, cases, sound.examples))]

    assert "status.conditions.0.status" in findings[0].seen
