"""The tests whose executed lines are not measured.

Measuring doubles the CPU time of a test, and these repeat lines that other tests execute as well: the tests of real
processes, the slow ones, and those of generated examples.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pytest

MARKS: Final = ("integration", "upstream", "slow", "hypothesis")
"""Marks of tests that are not measured. Hypothesis marks its own tests."""
UNMEASURED: Final = "no_cover"
"""Mark of pytest-cov: nothing is measured while such a test runs."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Mark the tests that are not measured, after Hypothesis has marked its own."""
    for item in items:
        if any(item.get_closest_marker(mark) for mark in MARKS):
            item.add_marker(UNMEASURED)
