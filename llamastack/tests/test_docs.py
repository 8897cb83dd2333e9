"""Tests that the documentation names every condition and reason."""

from __future__ import annotations

import re
from pathlib import Path

from kubefoundry_llamastack.reasons import REASONS

PAGE = Path(__file__).parents[2] / "docs" / "llamastack" / "operator.md"


def test_docs_name_every_reason() -> None:
    words = set(re.findall(r"\w+", PAGE.read_text()))

    assert {word for reasons in REASONS.values() for word in reasons} <= words
    assert set(REASONS) <= words
