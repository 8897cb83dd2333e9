"""When two JSON values are the same."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._api.equality import same


@pytest.mark.parametrize(
    ("value", "other", "expected"),
    [
        (1, 1, True),
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (True, True, True),
        ("1", 1, False),
        (None, False, False),
        (None, None, True),
        ([], {}, False),
        ([1, [2]], [1, [2]], True),
        ([1, [2]], [1, [True]], False),
        ([1], [1, 1], False),
        ({"a": {"b": 1}}, {"a": {"b": 1}}, True),
        ({"a": {"b": 1}}, {"a": {"b": True}}, False),
        ({"a": None}, {}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    ],
)
def test_same(value: Any, other: Any, expected: bool) -> None:
    assert (same(value, other), same(other, value)) == (expected, expected)
