"""Events: one a transition."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_core.announcements import Announcement, announcements
from kubefoundry_core.decision import NO_SELECTOR, Surroundings, decide

GOOD: dict[str, Any] = {"model": {"id": "org/model"}, "engine": {"type": "llamacpp"}}


@pytest.mark.parametrize(
    ("spec", "surroundings", "expected"),
    [
        (GOOD, Surroundings(frozenset(), True), []),
        (GOOD, Surroundings(frozenset(), False), [Announcement("Warning", "NoSelector", NO_SELECTOR)]),
        (
            {**GOOD, "provider": {"name": "acme"}},
            Surroundings(frozenset({"acme"}), False),
            [
                Announcement(
                    "Normal", "ProviderSelected", "Selected provider 'acme': explicit provider selection"
                )
            ],
        ),
        (
            {**GOOD, "provider": {"name": "acme"}},
            Surroundings(frozenset(), False),
            [
                Announcement(
                    "Warning",
                    "ProviderNotRegistered",
                    "Provider 'acme' is not registered (registered: none)",
                )
            ],
        ),
        (
            {"model": {"id": "a/b"}},
            Surroundings(frozenset(), True),
            [Announcement("Warning", "ValidationFailed", "spec.engine.type: engine.type is required")],
        ),
    ],
)
def test_a_transition_is_told_once(
    spec: dict[str, Any], surroundings: Surroundings, expected: list[Announcement]
) -> None:
    deployment = {"metadata": {"name": "m", "namespace": "n", "generation": 1}, "spec": spec}
    decided = decide(deployment, surroundings)

    assert announcements({}, decided) == expected
    assert announcements(decided, decided) == []
