"""Run a sample of the generated cases, or all of them.

`make test` and `make check` set KUBEFOUNDRY_CASES=sample. Of a test that tries each combination of states, providers
and faults, marked `sampled(N)`, one of N cases then runs, always the same one. `examples` does this for Hypothesis. A
test that takes long and shows in another setting what other tests show is marked `thorough`, and does not run then.
"""

from __future__ import annotations

import os
import zlib
from typing import Final

import pytest

SAMPLE: Final = os.environ.get("KUBEFOUNDRY_CASES") == "sample"
SHARE: Final = 4
"""One of so many examples of Hypothesis is in the sample."""
FEWEST: Final = 10
"""Examples that are always tried."""


def examples(count: int) -> int:
    """Return how many of `count` examples are tried."""
    return min(count, max(FEWEST, count // SHARE)) if SAMPLE else count


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests and cases outside of the sample."""
    if not SAMPLE:
        return
    left_out = [item for item in items if not is_in_sample(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if is_in_sample(item)]


def is_in_sample(item: pytest.Item) -> bool:
    """Check whether a test belongs to the sample."""
    if item.get_closest_marker("thorough"):
        return False
    mark = item.get_closest_marker("sampled")
    # The hash that Python has for texts differs from process to process, and all workers need the same sample.
    return mark is None or zlib.crc32(item.name.encode()) % int(mark.args[0]) == 0
