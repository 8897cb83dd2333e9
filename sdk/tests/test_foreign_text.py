"""What others wrote as a name: on one line, visible, bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_sdk._api.foreign_text import LONGEST, MOST, listed, shown


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vllm", "vllm"),
        ("größe", "größe"),
        ("a b", "a b"),
        ("a\nb", '"a\\nb"'),
        ("\u202edrow", '"\\u202edrow"'),
        ("x" * 3000, "x" * LONGEST + "…"),
    ],
)
def test_foreign_name_is_shown_unchanged_if_harmless(name: str, expected: str) -> None:
    assert shown(name) == expected


@given(st.lists(st.text(max_size=300), max_size=30))
def test_any_names_make_one_bounded_line(names: list[str]) -> None:
    text = listed(names)

    assert text.isprintable()
    assert len(text) <= (MOST + 1) * (6 * LONGEST + 10)
    assert (f"{len(names) - MOST} more" in text) == (len(names) > MOST)
