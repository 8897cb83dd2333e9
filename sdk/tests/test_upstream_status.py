"""A status is read without trust in its form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk.status import UpstreamCondition, count, mapping, outdated, text, upstream_conditions

ANYTHING: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["conditions", "type", "status", "reason"]), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(ANYTHING)
def test_upstream_conditions_survive_any_status(status: Any) -> None:
    for name, condition in upstream_conditions(status).items():
        assert condition.type == name
        assert all(isinstance(part, str) for part in condition)


def test_upstream_condition_is_read_by_type() -> None:
    ready = {
        "type": "Ready",
        "status": "False",
        "reason": "Pulling",
        "message": "50 %",
        "lastTransitionTime": "t",
    }

    by_type = upstream_conditions({"conditions": [ready, {"type": 3}, "x", {"type": "Odd", "status": True}]})

    assert by_type == {
        "Ready": UpstreamCondition("Ready", "False", "Pulling", "50 %", "t"),
        "Odd": UpstreamCondition("Odd"),
    }
    assert by_type["Ready"].words() == "Ready is False (Pulling): 50 %"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"status": "False", "reason": "Crash"}, "Ready is False (Crash)"),
        ({"status": "", "reason": "Crash"}, "Ready has no status (Crash)"),
        ({"status": True, "message": "bad"}, "Ready has no status: bad"),
        ({}, "Ready has no status"),
    ],
)
def test_condition_without_a_status_is_named_as_such(status: Any, words: str) -> None:
    assert upstream_conditions({"conditions": [{"type": "Ready", **status}]})["Ready"].words() == words


@pytest.mark.parametrize(
    ("stated", "clause"),
    [
        (None, "has not reported on the newest generation yet"),
        (1, "has not seen the newest generation yet"),
        (0, "has not seen the newest generation yet"),
        (99, "names generation 99, but the newest is 2"),
        ("2", "names a generation that is not a valid number"),
        (True, "names a generation that is not a valid number"),
        (-1, "names a generation that is not a valid number"),
        ([2], "names a generation that is not a valid number"),
    ],
)
def test_another_generation_is_named_as_it_was_stated(stated: object, clause: str) -> None:
    assert outdated(stated, 2) == clause


@pytest.mark.parametrize("order", [1, -1])
def test_condition_that_contradicts_itself_is_unknown(order: int) -> None:
    reported = [
        {"type": "Ready", "status": "False", "reason": "Crash", "message": "bad"},
        {"type": "Ready", "status": "True", "message": "fine"},
    ]

    condition = upstream_conditions({"conditions": reported[::order]})["Ready"]

    assert (condition.status, condition.reason) == ("Unknown", "Contradiction")
    assert (
        condition.message
        == "the status reports both that Ready is False (Crash): bad and Ready is True: fine"
    )


def test_many_contradictions_take_little_time_and_room() -> None:
    reported = [
        {"type": "Ready", "status": ("True", "False")[number % 2], "message": f"m{number}"}
        for number in range(20_000)
    ]

    condition = upstream_conditions({"conditions": reported})["Ready"]

    assert condition.message == "the status reports both that Ready is False: m1 and Ready is True: m0"


@pytest.mark.parametrize(
    ("value", "read"), [(3, 3), (0, 0), (-1, None), (True, None), ("3", None), (2**31, None), (1.0, None)]
)
def test_count_accepts_only_possible_numbers_of_pods(value: object, read: int | None) -> None:
    assert count(value) == read


def test_value_of_another_type_is_read_as_absent() -> None:
    assert (mapping([1]), mapping({"a": 1}), text(1), text("a")) == ({}, {"a": 1}, "", "a")
