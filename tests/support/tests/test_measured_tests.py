"""Tests whose executed lines `make test` does not measure."""

from __future__ import annotations

import pytest

from support.measured_tests import UNMEASURED, pytest_collection_modifyitems


@pytest.mark.parametrize(
    ("mark", "is_measured"),
    [("asyncio", True), ("slow", False), ("integration", False), ("upstream", False), ("hypothesis", False)],
)
def test_only_quick_tests_in_one_process_are_measured(
    request: pytest.FixtureRequest, mark: str, is_measured: bool
) -> None:
    item = pytest.Function.from_parent(request.node.parent, name="test", callobj=lambda: None)
    item.add_marker(mark)

    pytest_collection_modifyitems([item])

    assert (item.get_closest_marker(UNMEASURED) is None) == is_measured
