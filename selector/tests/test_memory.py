"""What a selection remembers comes back from the message that carries it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_selector.memory import MAX_TEXT, Memory, mark, recall, remember

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9\-]{0,20}[a-z0-9])?", fullmatch=True)
MEMORIES = st.builds(
    Memory,
    st.lists(NAMES, max_size=4).map(tuple),
    st.one_of(st.none(), st.text(min_size=1).map(mark)),
)


@given(st.text(max_size=200).map(lambda text: f"{text}."), MEMORIES)
def test_round_trip(text: str, memory: Memory) -> None:
    assert recall(remember(text, memory)) == (text, memory)


@given(MEMORIES)
def test_a_text_that_is_too_long_gives_way(memory: Memory) -> None:
    message = remember("a" * 100_000, memory)

    assert recall(message)[1] == memory
    assert len(recall(message)[0]) == MAX_TEXT


@pytest.mark.parametrize(
    ("message", "text", "memory"),
    [
        ("Provider a auto-selected", "Provider a auto-selected", Memory()),
        ("Provider a auto-selected [reselect: 7]", "Provider a auto-selected", Memory((), "7")),
        ("x [left out: a, b] [reselect: 7]", "x", Memory(("a", "b"), "7")),
        ("chosen by cost [EUR]", "chosen by cost [EUR]", Memory()),
        ("a [reselect: 7] b", "a [reselect: 7] b", Memory()),
        ("", "", Memory()),
    ],
)
def test_messages_as_people_and_other_selectors_write_them(message: str, text: str, memory: Memory) -> None:
    assert recall(message) == (text, memory)


def test_marks() -> None:
    assert mark(None) is None
    assert mark("") is None
    assert mark("2026-02-04T10:00:00Z") == "2026-02-04T10:00:00Z"
    assert str(mark("two words")).startswith("sha256:")
    assert mark("a" * 64) == "a" * 64
    assert mark("a" * 65) != mark("a" * 66)
