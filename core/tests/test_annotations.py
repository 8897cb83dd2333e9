"""Annotations without an effect are warned about when they are set."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_core.admission import modeldeployments

SPEC: dict[str, Any] = {"model": {"id": "org/model"}, "engine": {"type": "llamacpp"}}


def warnings(annotations: Any, before: Any = None, *, update: bool = True) -> list[str]:
    """Of a request that sets these annotations."""

    def obj(found: Any) -> dict[str, Any]:
        return {"metadata": {"name": "m", "namespace": "n", "annotations": found}, "spec": SPEC}

    request = {
        "uid": "u",
        "kind": {"group": "kubefoundry.ai", "version": "v1alpha1", "kind": "ModelDeployment"},
        "name": "m",
        "object": obj(annotations),
        "oldObject": obj(before) if update else None,
    }
    answer = modeldeployments.validate({"request": request}, {})["response"]
    assert answer["allowed"] is True
    return list(answer.get("warnings", []))


PAUSED = "kubefoundry.ai/reconcile-paused"
VERIFY = "kubefoundry.ai/verify-endpoint"


@pytest.mark.parametrize("update", [True, False])
@pytest.mark.parametrize("value", ["True", "yes", "1", "on", " true"])
def test_value_without_effect_is_warned_about(value: str, update: bool) -> None:
    assert warnings({PAUSED: value}, update=update) == [
        f'annotation {PAUSED}: "{value}" has no effect: set it to "true"'
    ]


@pytest.mark.parametrize(
    "annotations",
    [
        {PAUSED: "true"},
        {PAUSED: "false"},
        {PAUSED: ""},
        {"kubefoundry.ai/dry-run": "true", "kubefoundry.ai/dry-run-result": "{}"},
        {VERIFY: "answer"},
        {"kubefoundry.ai/refresh": "today", "kubefoundry.ai/reselect": "True"},
        {"example.com/paused": "yes"},
        None,
        "x",
        {PAUSED: 1},
    ],
)
def test_other_annotations_cause_no_warning(annotations: Any) -> None:
    assert warnings(annotations) == []


def test_all_values_with_an_effect_are_named() -> None:
    assert warnings({VERIFY: "yes"}) == [
        f'annotation {VERIFY}: "yes" has no effect: set it to "true" or "answer"'
    ]


def test_unknown_annotation_is_warned_about() -> None:
    [line] = warnings({"kubefoundry.ai/paused": "true"})

    assert line.startswith(
        "annotation kubefoundry.ai/paused is unknown and has no effect; known annotations: "
    )
    assert PAUSED in line


def test_annotation_that_was_there_is_not_warned_about_again() -> None:
    assert warnings({PAUSED: "yes", "a": "b"}, {PAUSED: "yes"}) == []


def test_warnings_are_few_and_short() -> None:
    found = warnings({f"kubefoundry.ai/{number:04}{'x' * 200}": "y" * 9000 for number in range(500)})

    assert len(found) == 10
    assert max(map(len, found)) < 300
