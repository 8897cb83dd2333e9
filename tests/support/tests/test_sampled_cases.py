"""The sample of generated cases that `make test` runs."""

from __future__ import annotations

import pytest

from support import sampled_cases
from support.sampled_cases import is_in_sample

COUNT = 120


def cases(request: pytest.FixtureRequest, *marks: pytest.MarkDecorator) -> list[pytest.Item]:
    """Return COUNT cases of a test with these marks."""
    items: list[pytest.Item] = [
        pytest.Function.from_parent(request.node.parent, name=f"test[{number}]", callobj=lambda: None)
        for number in range(COUNT)
    ]
    for item in items:
        for mark in marks:
            item.add_marker(mark)
    return items


@pytest.mark.parametrize("share", [2, 3, 6])
def test_sample_is_about_its_share(request: pytest.FixtureRequest, share: int) -> None:
    count = sum(map(is_in_sample, cases(request, pytest.mark.sampled(share))))

    assert COUNT / share * 0.5 < count < COUNT / share * 1.5


@pytest.mark.parametrize(("marks", "count"), [((), COUNT), ((pytest.mark.thorough,), 0)])
def test_thorough_test_is_in_no_sample(
    request: pytest.FixtureRequest, marks: tuple[pytest.MarkDecorator, ...], count: int
) -> None:
    assert sum(map(is_in_sample, cases(request, *marks))) == count


@pytest.mark.parametrize(("is_sample", "count"), [(True, 0), (False, COUNT)])
def test_all_cases_run_unless_sample_is_asked_for(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, is_sample: bool, count: int
) -> None:
    monkeypatch.setattr(sampled_cases, "SAMPLE", is_sample)
    items = cases(request, pytest.mark.thorough)

    sampled_cases.pytest_collection_modifyitems(request.config, items)

    assert len(items) == count


@pytest.mark.parametrize(("count", "tried"), [(200, 50), (40, 10), (12, 10), (4, 4)])
def test_share_of_examples_is_tried(monkeypatch: pytest.MonkeyPatch, count: int, tried: int) -> None:
    monkeypatch.setattr(sampled_cases, "SAMPLE", True)

    assert sampled_cases.examples(count) == tried


def test_all_examples_are_tried_without_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled_cases, "SAMPLE", False)

    assert sampled_cases.examples(200) == 200
