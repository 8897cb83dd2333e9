"""docs/behaviours.md is what the lists say, and every test that is named there exists."""

from __future__ import annotations

import pytest

from behaviours.catalogue import Behaviour, Outcome, behaviours, is_defined, outcome
from behaviours.document import DOCUMENT, document

ALL = behaviours()


def test_behaviours_document_is_current() -> None:
    assert DOCUMENT.read_text() == document(), "out of date: make docs"


@pytest.mark.parametrize("behaviour", ALL, ids=lambda behaviour: behaviour.says)
def test_behaviour_names_existing_tests(behaviour: Behaviour) -> None:
    assert behaviour.tests
    assert [test for test in behaviour.tests if not is_defined(test)] == []


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        pytest.param({"a::x[1]": "passed", "a::x[2]": "passed", "a::y": "passed"}, ("passed", 3), id="all"),
        pytest.param(
            {"a::x[1]": "failed", "a::x[2]": "passed", "a::y": "passed"}, ("failed", 2), id="one failed"
        ),
        pytest.param({"a::x[1]": "passed"}, ("not run", 1), id="one was not run"),
        pytest.param({"a::x": "skipped", "a::y": "passed"}, ("skipped", 1), id="one was skipped"),
        pytest.param({"a::xy": "passed", "a::y": "passed"}, ("not run", 1), id="another of a longer name"),
    ],
)
def test_behaviour_outcome_follows_from_its_tests(
    reported: dict[str, Outcome], expected: tuple[Outcome, int]
) -> None:
    assert outcome(Behaviour("s", "b", ("a::x", "a::y")), reported) == expected
