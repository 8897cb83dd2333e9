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
    assert PAGE["numbered"]("12. Apply.\n\n    Revert\n    the changes of others.\n    ") == (
        12,
        "Apply. Revert the changes of others.",
    )


@pytest.mark.parametrize("docstring", ["", "Apply.", "1.", "First, apply."])
def test_step_docstring_is_rejected_without_a_number(docstring: str) -> None:
    with pytest.raises(ValueError, match="does not begin with a number"):
        PAGE["numbered"](docstring)
