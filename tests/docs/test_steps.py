"""The steps of a reconcile in docs/contract.md are those of the code, in its order."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = runpy.run_path(str(DOCS / "steps.py"))


def test_contract_lists_the_steps_of_the_code() -> None:
    text = (DOCS / "contract.md").read_text(encoding="utf-8")

    assert PAGE["BEGIN"] in text
    assert PAGE["END"] in text
    assert PAGE["contract"](text) == text, "make docs"


def test_step_docstring_becomes_one_line() -> None:
    assert PAGE["numbered"]("12. Apply. Revert\n    what others changed") == (
        12,
        "Apply. Revert what others changed",
    )


@pytest.mark.parametrize("docstring", ["", "Apply", "1. Apply.\n\n    Then prune."])
def test_step_docstring_is_rejected_when_malformed(docstring: str) -> None:
    with pytest.raises(ValueError, match="not one paragraph with a number"):
        PAGE["numbered"](docstring)
