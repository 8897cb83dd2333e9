"""When an upstream status counts as stale, and when a quiet one does not."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk.provider.staleness import THRESHOLD, Silences, acknowledged, message


def upstream(status: dict[str, Any] | None, generation: int = 3) -> dict[str, Any]:
    return {
        "kind": "Widget",
        "metadata": {"name": "m", "uid": "u", "generation": generation},
        **({"status": status} if status is not None else {}),
    }


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(None, False, id="no status"),
        pytest.param({}, False, id="an empty status"),
        pytest.param({"observedGeneration": 2}, False, id="behind"),
        pytest.param({"observedGeneration": 3}, True, id="current"),
        pytest.param({"conditions": [{"observedGeneration": 2}]}, False, id="conditions behind"),
        pytest.param(
            {"conditions": [{"observedGeneration": 2}, {"observedGeneration": 3}]}, True, id="one current"
        ),
        pytest.param({"state": "pending"}, True, id="an upstream that tells no generation"),
        pytest.param({"observedGeneration": "odd"}, True, id="an odd generation"),
        pytest.param({"conditions": "odd"}, True, id="odd conditions"),
    ],
)
def test_acknowledged(status: dict[str, Any] | None, expected: bool) -> None:
    assert acknowledged(upstream(status)) is expected


def test_silence_counts_from_its_first_sight_and_anew_for_a_new_generation() -> None:
    silences = Silences()
    key = ("n", "m")

    assert silences.left(key, upstream(None), 0.0) == THRESHOLD
    assert silences.left(key, upstream(None), 299.0) == 1.0
    assert silences.left(key, upstream(None), 301.0) <= 0
    assert silences.left(key, upstream(None, generation=4), 302.0) == THRESHOLD


def test_an_answer_ends_the_silence() -> None:
    silences = Silences()
    silences.left(("n", "m"), upstream(None), 0.0)

    silences.forget(("n", "m"))

    assert silences.left(("n", "m"), upstream(None), 1000.0) == THRESHOLD


def test_the_message_says_what_to_check() -> None:
    assert message(upstream({"observedGeneration": 1})) == (
        "Widget 'm' has a status older than generation 3 for more than 5 minutes; check that its operator runs"
    )
