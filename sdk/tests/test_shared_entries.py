"""Entries of others in maps and lists that an apply replaces as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._provider.write.shared_entries import carry


@pytest.mark.parametrize(
    ("path", "ours", "live", "applied", "expected"),
    [
        ("a.m", {"a": {}}, {"a": {"m": {"theirs": 1}}}, {"a": {}}, {"a": {"m": {"theirs": 1}}}),
        ("m", {"m": {"x": 2}}, {"m": {"x": 1, "y": 1}}, {"m": {"x": 1}}, {"m": {"x": 2, "y": 1}}),
        ("m", {}, {"m": {"ours": 1}}, {"m": {"ours": 1}}, {}),
        ("l", {"l": [1]}, {"l": [1, 2]}, {"l": [1]}, {"l": [1, 2]}),
        ("l", {"l": []}, {"l": [1, 2]}, {"l": [1]}, {"l": [2]}),
        (
            "g[*].m",
            {"g": [{"n": 1}, {"n": 2}]},
            {"g": [{"n": 1, "m": {"t": 1}}, {"n": 2}]},
            {"g": [{"n": 1}, {"n": 2}]},
            {"g": [{"n": 1, "m": {"t": 1}}, {"n": 2}]},
        ),
        ("g[*].m", {"g": [{}]}, {"g": [{"m": {"t": 1}}, {}]}, {"g": [{}]}, {"g": [{}]}),
        ("s", {}, {"s": True}, {}, {}),
        ("a.m", {"a": {}}, {"a": "text"}, {"a": {}}, {"a": {}}),
        ("m", {}, {}, {}, {}),
    ],
    ids=[
        "new map",
        "key in a map",
        "dropped key",
        "item of a list",
        "dropped item",
        "items of a list of maps",
        "other number of items",
        "scalar",
        "wrong type",
        "nothing",
    ],
)
def test_carry_keeps_entries_of_others(path: str, ours: Any, live: Any, applied: Any, expected: Any) -> None:
    carry((path,), ours, live, applied)

    assert ours == expected


def test_carry_leaves_the_render_unchanged() -> None:
    inner: dict[str, Any] = {}
    main = {"a": inner}

    carry(("a.m",), main, {"a": {"m": {"theirs": 1}}}, {})

    assert (main, inner) == ({"a": {"m": {"theirs": 1}}}, {})
