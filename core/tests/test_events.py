"""Events: one a transition."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_core.decision import NO_SELECTOR, Surroundings, decide
from kubefoundry_core.events import Announcement, announcements
from kubefoundry_core.provider_health import Health

GOOD: dict[str, Any] = {"model": {"id": "org/model"}, "engine": {"type": "llamacpp"}}


@pytest.mark.parametrize(
    ("spec", "surroundings", "expected"),
    [
        (GOOD, Surroundings({}, True), []),
        (GOOD, Surroundings({}, False), [Announcement("Warning", "NoSelector", NO_SELECTOR)]),
        (
            {**GOOD, "provider": {"name": "acme"}},
            Surroundings({"acme": ""}, False),
            [
                Announcement(
                    "Normal", "ProviderSelected", "Selected provider 'acme': explicit provider selection"
                )
            ],
        ),
        (
            {**GOOD, "provider": {"name": "acme"}},
            Surroundings({}, False),
            [
                Announcement(
                    "Warning",
                    "ProviderNotRegistered",
                    (
                        "Provider 'acme' is not registered (registered: none): "
                        "ask an administrator to install it; kubefoundry provider list shows all"
                    ),
                )
            ],
        ),
        (
            {"engine": {"type": "llamacpp"}},
            Surroundings({}, True),
            [
                Announcement(
                    "Warning",
                    "ValidationFailed",
                    "spec.model.id: model.id is required when source is huggingface",
                )
            ],
        ),
    ],
)
def test_event_of_transition_is_announced_once(
    spec: dict[str, Any], surroundings: Surroundings, expected: list[Announcement]
) -> None:
    deployment = {"metadata": {"name": "m", "namespace": "n", "generation": 1}, "spec": spec}
    decided = decide(deployment, surroundings)

    assert announcements({}, decided) == expected
    assert announcements(decided, decided) == []


def test_another_named_provider_is_reported() -> None:
    deployment = {"metadata": {"name": "m", "namespace": "n", "generation": 1}}
    around = Surroundings({"acme": "", "beta": ""}, False)
    acme, beta = (
        decide({**deployment, "spec": {**GOOD, "provider": {"name": name}}}, around)
        for name in ("acme", "beta")
    )

    assert announcements(acme, beta) == [
        Announcement("Normal", "ProviderSelected", "Selected provider 'beta': explicit provider selection")
    ]


LOST = Health("HeartbeatLost", "lost")
BACK = Health("HeartbeatSeen", "back")
DOWN = Health("UpstreamOperatorDown", "down")


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param(None, BACK, [], id="well from the start"),
        pytest.param(None, LOST, [Announcement("Warning", "HeartbeatLost", "lost")], id="lost"),
        pytest.param(LOST, LOST, [], id="still lost"),
        pytest.param(LOST, None, [], id="nothing known"),
        pytest.param(LOST, BACK, [Announcement("Normal", "HeartbeatSeen", "back")], id="back"),
        pytest.param(
            LOST, DOWN, [Announcement("Warning", "UpstreamOperatorDown", "down")], id="another reason"
        ),
    ],
)
def test_event_of_provider_health_is_announced_once(
    before: Health | None, now: Health | None, expected: list[Announcement]
) -> None:
    def decided(live: dict[str, Any], health: Health | None) -> dict[str, Any]:
        around = Surroundings({"acme": ""}, True, {"acme": health} if health else {})
        return decide({**deployment, "status": live}, around)

    deployment = {"metadata": {"name": "m", "namespace": "n", "generation": 1}, "spec": GOOD}
    chosen = {"provider": {"name": "acme"}}
    live = {**chosen, **decided(chosen, before)}

    assert announcements(live, decided(live, now)) == expected
