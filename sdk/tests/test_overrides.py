"""Overrides of the wrong type: answered with YAML types, with the path and the type that is wanted."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from kubefoundry_sdk._provider.reconcile.overrides import wrong_types


class Frontend(BaseModel):
    model_config = ConfigDict(strict=True)

    replicas: Annotated[int, Field(ge=1, le=9)] = 1


class Overrides(BaseModel):
    model_config = ConfigDict(strict=True)

    frontend: Frontend = Frontend()
    memory: str | int | None = None
    command: Annotated[list[str], Field(min_length=1, max_length=2)] | None = None
    params: dict[str, str] = Field(default_factory=dict)
    rollout: Literal["surge", "replace"] | None = None
    claim: Annotated[str, Field(min_length=1, max_length=3, pattern="^[a-z]+$")] | None = None
    share: float | None = None
    debug: bool = False


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"frontend": "x"}, "overrides.frontend: must be a map, but is text"),
        ({"frontend": ["x"]}, "overrides.frontend: must be a map, but is a list"),
        ({"frontend": {"replicas": "2"}}, "overrides.frontend.replicas: must be a whole number, but is text"),
        (
            {"frontend": {"replicas": 1.5}},
            "overrides.frontend.replicas: must be a whole number, but is a number",
        ),
        (
            {"frontend": {"replicas": True}},
            "overrides.frontend.replicas: must be a whole number, but is true or false",
        ),
        ({"frontend": {"replicas": 0}}, "overrides.frontend.replicas: must be at least 1"),
        ({"frontend": {"replicas": 10}}, "overrides.frontend.replicas: must be at most 9"),
        ({"memory": [1]}, "overrides.memory: must be text or a whole number, but is a list"),
        ({"command": "x"}, "overrides.command: must be a list, but is text"),
        ({"command": ["x", 2]}, "overrides.command.1: must be text, but is a whole number"),
        ({"command": []}, "overrides.command: must have at least 1 item"),
        ({"command": ["a", "b", "c"]}, "overrides.command: must have at most 2 items"),
        ({"params": ["x"]}, "overrides.params: must be a map, but is a list"),
        ({"params": {"num-cpus": 1}}, "overrides.params.num-cpus: must be text, but is a whole number"),
        ({"rollout": "now"}, "overrides.rollout: must be 'surge' or 'replace'"),
        ({"claim": ""}, "overrides.claim: must have at least 1 character"),
        ({"claim": "abcd"}, "overrides.claim: must have at most 3 characters"),
        ({"claim": "A"}, "overrides.claim: must match ^[a-z]+$"),
        ({"share": "x"}, "overrides.share: must be a number, but is text"),
        ({"debug": "true"}, "overrides.debug: must be true or false, but is text"),
        ({"debug": None}, "overrides.debug: must be true or false, but has no value"),
    ],
)
def test_wrong_value_is_answered_in_words(given: dict[str, Any], problem: str) -> None:
    assert wrong_types(Overrides, given) == [problem]


def test_each_wrong_value_is_named() -> None:
    problems = wrong_types(Overrides, {"frontend": {"replicas": "x"}, "command": 1})

    assert problems == [
        "overrides.frontend.replicas: must be a whole number, but is text",
        "overrides.command: must be a list, but is a whole number",
    ]


def test_right_values_have_no_problem() -> None:
    assert wrong_types(Overrides, {"frontend": {"replicas": 2}, "memory": 5, "other": 1}) == []
