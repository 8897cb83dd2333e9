"""The sample of generated cases that `make test` runs."""

from __future__ import annotations

import pytest

from support import sampled_cases

COUNT = 120


def sampled(request: pytest.FixtureRequest, share: int) -> list[str]:
    """Return the names in the sample of a test with COUNT cases and one case without the mark."""
    items: list[pytest.Item] = [
        pytest.Function.from_parent(request.node.parent, name=f"test[{number}]", callobj=lambda: None)
        for number in range(COUNT)
    ]
    for item in items[1:]:
        item.add_marker(pytest.mark.sampled(share))
    sampled_cases.pytest_collection_modifyitems(request.config, items)
    return [item.name for item in items]


def test_sample_has_its_share_and_all_unmarked(request: pytest.FixtureRequest) -> None:
    names = sampled(request, 6)

    assert "test[0]" in names
    assert COUNT / 6 * 0.5 < len(names) < COUNT / 6 * 1.5
    assert names == sampled(request, 6)


def test_all_cases_run_on_request(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled_cases, "ALL", True)

    assert len(sampled(request, 6)) == COUNT
    assert sampled_cases.examples(200) == 200


@pytest.mark.parametrize(("count", "tried"), [(200, 50), (40, 10), (12, 10), (4, 4)])
def test_share_of_examples_is_tried(monkeypatch: pytest.MonkeyPatch, count: int, tried: int) -> None:
    monkeypatch.setattr(sampled_cases, "ALL", False)

    assert sampled_cases.examples(count) == tried
