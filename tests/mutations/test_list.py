"""The lists of mutations fit the code: every rule stands where it says, and every test is there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

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


def test_mutations_use_no_undefined_name(tmp_path: Path) -> None:
    """A NameError fails any test, whether the test knows the rule or not."""
    for at, mutation in enumerate(ALL):
        text = mutation.mutate((ROOT / mutation.file).read_text(encoding="utf-8"))
        (tmp_path / f"m{at}.py").write_text(text, encoding="utf-8")

    check = ["ruff", "check", "--isolated", "--select=F821", "--output-format=concise", str(tmp_path)]
    result = subprocess.run([sys.executable, "-m", *check], capture_output=True, text=True)

    undefined = re.findall(r"m(\d+)\.py:\d+:\d+: F821 (.*)", result.stdout)
    assert [(ALL[int(at)].rule, text) for at, text in undefined] == []
    assert result.returncode == 0, result.stderr


def test_there_are_enough_and_each_once() -> None:
    assert [len(of_list(path)) >= least for path, least in zip(LISTS, LEAST, strict=True)] == [True] * len(
        LISTS
    )
    assert max(Counter(mutation.rule for mutation in ALL).values()) == 1
    assert max(Counter((mutation.file, mutation.before) for mutation in ALL).values()) == 1
