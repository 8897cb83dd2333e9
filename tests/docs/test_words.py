"""The check of words sees what it has to see, and its list is the one in CONTRIBUTING.md."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
CHECK: Final[dict[str, Any]] = runpy.run_path(str(ROOT / "docs" / "words.py"))


def test_word_list_is_parsed() -> None:
    words = CHECK["replaced"](CHECK["LIST"].read_text(encoding="utf-8"))

    assert len(words) > 20
    assert words["is " + "told"] == "is reported, says"


def test_text_without_word_list_is_rejected() -> None:
    with pytest.raises(ValueError, match="no list of words"):
        CHECK["replaced"]("# Contributing\n")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("it is made new", []),
        ("it is made over", [1]),
        ("def test_it_is_made_over() -> None:", [1]),
        ("# it is made\n# over", [1]),
        ("it\nis Made\n    over", [2]),
        ("a makeover, remade overnight", []),
    ],
)
def test_replaced_word_is_reported_with_its_line(text: str, lines: list[int]) -> None:
    matches = CHECK["find_words"](text, {"made over": "recreated"})

    assert [line for line, _, _ in matches] == lines


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("test_" + "a_model_serves", True),
        ("test_" + "an_edit_is_written", True),
        ("test_" + "the_plan_is_empty", True),
        ("test_answer_is_read", False),
        ("test_" + "x" * 55, False),
        ("test_" + "x" * 56, True),
    ],
)
def test_article_or_length_of_test_name_is_reported(name: str, reported: bool) -> None:
    for text in (f"\n    async def {name}() -> None:", f"\ndef {name}("):
        matches = list(CHECK["find_test_names"](text))

        assert [(line, word) for line, word, _ in matches] == [(2, name)] * reported
