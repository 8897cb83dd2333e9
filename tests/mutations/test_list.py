"""The lists of mutations fit the code: every rule stands where it says, and every test is there."""

from __future__ import annotations

from collections import Counter

import pytest

from mutations.catalogue import LISTS, ROOT, Mutation, defines, mutations, of_list

ALL = mutations()
LEAST = (25, 20, 2)
"""In each of the lists."""


@pytest.mark.parametrize("mutation", ALL, ids=lambda mutation: mutation.rule)
def test_a_mutation_fits_and_its_test_is_there(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text(encoding="utf-8")

    assert mutation.mutate(text) != text
    assert defines(ROOT, mutation.test)


def test_there_are_enough_and_each_once() -> None:
    assert [len(of_list(path)) >= least for path, least in zip(LISTS, LEAST, strict=True)] == [True] * len(
        LISTS
    )
    assert max(Counter(mutation.rule for mutation in ALL).values()) == 1
    assert max(Counter((mutation.file, mutation.before) for mutation in ALL).values()) == 1
