"""The selector's memory comes back from `status.selection`, or from the message of an earlier release."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_selector.memory import MAX_TEXT, Memory, mark, recall, shortened

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9\-]{0,20}[a-z0-9])?", fullmatch=True)
MEMORIES = st.builds(
    Memory,
    st.dictionaries(NAMES, st.text(max_size=20), max_size=4),
    st.one_of(st.none(), st.text(min_size=1).map(mark)),
)


def status(message: str, selection: Any = None, reason: str = "AutoSelected") -> dict[str, Any]:
    condition = {"type": "ProviderSelected", "status": "True", "reason": reason, "message": message}
    return {"conditions": [condition], "selection": selection}


@given(st.text(max_size=200), MEMORIES)
def test_memory_round_trips_through_the_status(text: str, memory: Memory) -> None:
    assert recall(status(text, memory.to_status())) == (text, memory)


@pytest.mark.parametrize(
    ("message", "text", "memory"),
    [
        ("Provider a auto-selected", "Provider a auto-selected", None),
        ("Provider a auto-selected [reselect: 7]", "Provider a auto-selected", Memory({}, "7")),
        (
            "x; a refused it: no [left out: a, b] [reselect: 7]",
            "x; a refused it: no",
            Memory({"a": "no", "b": ""}, "7"),
        ),
        ("chosen by cost [EUR]", "chosen by cost [EUR]", None),
        ("a [reselect: 7] b", "a [reselect: 7] b", None),
        ("", "", None),
    ],
)
def test_memory_is_read_from_messages_of_earlier_releases(
    message: str, text: str, memory: Memory | None
) -> None:
    assert recall(status(message)) == (text, memory)


@pytest.mark.parametrize(
    "selection", [{"reselect": 7, "leftOut": "x"}, {"leftOut": [None, {}, {"name": "", "message": 1}]}, {}]
)
def test_corrupt_memory_is_read_as_far_as_possible(selection: Any) -> None:
    text, memory = recall(status("x", selection))

    assert text == "x"
    assert memory is not None and memory.left_out == {}


def test_memory_ignores_a_message_of_core() -> None:
    assert recall(status("x [reselect: 7]", {"reselect": "1"}, "ExplicitlySelected")) == ("", None)


def test_long_message_is_cut() -> None:
    assert len(shortened("a" * 100_000)) == MAX_TEXT
    assert shortened("a") == "a"


def test_marks() -> None:
    assert mark(None) is None
    assert mark("") is None
    assert mark("2026-02-04T10:00:00Z") == "2026-02-04T10:00:00Z"
    assert str(mark("two words")).startswith("sha256:")
    assert mark("a" * 64) == "a" * 64
    assert mark("a" * 65) != mark("a" * 66)
