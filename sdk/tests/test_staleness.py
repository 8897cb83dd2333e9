"""When an upstream status counts as stale, and when a quiet one does not; by a clock that the test moves."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_sdk._provider.health.staleness import (
    THRESHOLD,
    Verdict,
    acknowledged,
    judge,
    message,
)
from kubefoundry_sdk._runtime.wait import Wait

DOWN = "Deployment widgets/widget-operator has no available replica"


def upstream(status: dict[str, Any] | None, generation: int = 3) -> dict[str, Any]:
    return {
        "kind": "Widget",
        "metadata": {"name": "m", "namespace": "n", "uid": "u", "generation": generation},
        **({"status": status} if status is not None else {}),
    }


CURRENT = upstream({"observedGeneration": 3})
BEHIND = upstream({"observedGeneration": 2})


class Watched:
    """An upstream object as the provider looks at it in the course of time."""

    def __init__(self, threshold: float = THRESHOLD) -> None:
        self.silence, self.threshold = Wait(), threshold
        self.now = 1000.0
        self.was_stale = False

    def after(
        self, seconds: float, live: dict[str, Any], phase: str = "Deploying", down: str | None = None
    ) -> Verdict:
        self.now += seconds
        verdict = judge(
            self.silence,
            live,
            phase=phase,
            was_stale=self.was_stale,
            down=down,
            threshold=self.threshold,
            now=self.now,
        )
        self.was_stale = verdict.message is not None
        return verdict


@pytest.mark.parametrize(
    ("status", "serving", "expected"),
    [
        pytest.param(None, False, False, id="no status"),
        pytest.param({}, False, False, id="an empty status"),
        pytest.param({"observedGeneration": 2}, False, False, id="behind"),
        pytest.param({"observedGeneration": 2}, True, False, id="behind, and serving"),
        pytest.param({"observedGeneration": 3}, False, True, id="current"),
        pytest.param(
            {"observedGeneration": 2, "conditions": [{"observedGeneration": 3}]},
            True,
            True,
            id="behind, with a condition that is current",
        ),
        pytest.param(
            {"observedGeneration": 3, "conditions": [{"observedGeneration": 2}]},
            True,
            True,
            id="current, with a condition that is behind",
        ),
        pytest.param({"conditions": [{"observedGeneration": 2}]}, False, False, id="conditions behind"),
        pytest.param(
            {"conditions": [{"observedGeneration": 2}]},
            True,
            True,
            id="conditions left as they are while it serves",
        ),
        pytest.param(
            {"conditions": [{"observedGeneration": 2}, {"observedGeneration": 3}]},
            False,
            True,
            id="one current",
        ),
        pytest.param({"state": "pending"}, False, True, id="an upstream that tells no generation"),
        pytest.param({"observedGeneration": "odd"}, False, False, id="an odd generation"),
        pytest.param({"observedGeneration": None}, True, False, id="no generation, and serving"),
        pytest.param({"observedGeneration": 99}, True, False, id="a generation that does not exist"),
        pytest.param(
            {"observedGeneration": "odd", "conditions": [{"observedGeneration": 3}]},
            False,
            True,
            id="an odd generation, with a condition that is current",
        ),
        pytest.param({"conditions": "odd"}, False, True, id="odd conditions"),
    ],
)
def test_acknowledged(status: dict[str, Any] | None, serving: bool, expected: bool) -> None:
    assert acknowledged(upstream(status), serving=serving) is expected


@pytest.mark.parametrize("serving", [True, False])
def test_status_has_to_name_a_generation_when_the_crd_can(serving: bool) -> None:
    bare, named = upstream({"state": "x"}), upstream({"conditions": [{"observedGeneration": 3}]})

    assert not acknowledged(bare, serving=serving, names_generation=True)
    assert acknowledged(named, serving=serving, names_generation=True)
    assert acknowledged(CURRENT, serving=serving, names_generation=True)


@pytest.mark.parametrize("live", [upstream(None), BEHIND], ids=["no status", "an older generation"])
def test_five_minutes_without_an_answer_are_stale_until_it_comes(live: dict[str, Any]) -> None:
    watched = Watched()

    assert watched.after(0, live) == Verdict(retry=300)
    assert watched.after(299, live) == Verdict(retry=1)
    assert watched.after(1, live).message == message(live, THRESHOLD)
    assert watched.after(3600, live).message == message(live, THRESHOLD)
    assert watched.after(1, CURRENT) == Verdict()
    assert watched.after(3600, live) == Verdict(retry=300)


def test_newer_generation_gets_its_own_five_minutes() -> None:
    watched = Watched()
    watched.after(0, BEHIND)

    assert watched.after(299, upstream({"observedGeneration": 2}, generation=4)) == Verdict(retry=300)


def test_model_that_loads_for_twenty_minutes_is_not_stale() -> None:
    watched = Watched()

    for _ in range(20):
        assert watched.after(60, upstream({"observedGeneration": 3, "state": "pending"})) == Verdict()


def test_idle_healthy_object_is_not_stale_after_days() -> None:
    watched = Watched()

    for _ in range(7):
        assert watched.after(24 * 3600, CURRENT, "Running") == Verdict()


def test_upstream_that_reports_its_failure_is_not_stale() -> None:
    watched = Watched()
    watched.after(0, BEHIND)

    assert watched.after(3600, BEHIND, "Failed") == Verdict()


@pytest.mark.parametrize("phase", ["Deploying", "Running", "Failed"])
def test_status_of_a_dead_operator_is_stale_in_five_minutes(phase: str) -> None:
    watched = Watched()
    assert watched.after(3600, CURRENT, phase) == Verdict()

    assert watched.after(1, CURRENT, phase, DOWN) == Verdict(retry=300)
    assert watched.after(300, CURRENT, phase, DOWN).message == (
        f"Widget 'm' has a status that nobody has kept up to date for more than 5 minutes: {DOWN}"
    )
    assert watched.after(1, CURRENT, phase) == Verdict()


def test_started_provider_reports_nothing_stale_at_first() -> None:
    watched = Watched()
    watched.was_stale = True

    assert watched.after(0, BEHIND).message == message(BEHIND, THRESHOLD)
    assert watched.after(1, CURRENT) == Verdict()


def test_stale_message_names_the_remedy() -> None:
    assert message(upstream({"observedGeneration": 1}), THRESHOLD) == (
        "Widget 'm' has had no status of generation 3 for more than 5 minutes; check that its operator runs"
    )
