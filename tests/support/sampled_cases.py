"""Run a sample of the generated cases, or all of them.

A test that tries each combination of states, providers and faults is marked `sampled(N)`: one of N cases runs, always
the same one. `examples` does this for Hypothesis. A test that takes long and shows in another setting what other
tests show is marked `thorough`, and does not run. KUBEFOUNDRY_CASES=all, which `make test-all` sets, runs all tests
and cases, and so does pytest with the path of a file.
"""

from __future__ import annotations

import os
import zlib
from typing import Final

import pytest

ALL: Final = os.environ.get("KUBEFOUNDRY_CASES") == "all"
SHARE: Final = 4
"""One of so many examples of Hypothesis is tried, if not all are."""
FEWEST: Final = 10
"""Examples that are always tried."""


def examples(count: int) -> int:
    """Return how many of `count` examples are tried."""
    return count if ALL else min(count, max(FEWEST, count // SHARE))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests and cases outside of the sample."""
    if ALL or any(".py" in argument for argument in config.args):
        return
    left_out = [item for item in items if not is_in_sample(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if is_in_sample(item)]


def is_in_sample(item: pytest.Item) -> bool:
    """Check whether a test runs when not all do."""
    if item.get_closest_marker("thorough"):
        return False
    mark = item.get_closest_marker("sampled")
    # The hash that Python has for texts differs from process to process, and all workers need the same sample.
    return mark is None or zlib.crc32(item.name.encode()) % int(mark.args[0]) == 0
