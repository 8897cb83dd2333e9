"""When core reports a provider as lost or healthy, and the condition of its deployments. The test moves the clock."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_core.provider_health import Health, Providers, provider_healthy

TIMEOUT = 180.0
LOST = "HeartbeatLost"
SEEN = "HeartbeatSeen"
DOWN = "UpstreamOperatorDown"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Observed:
    """Core's view of the provider acme, and a clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.providers = Providers(self.clock, TIMEOUT)

    def config(self, heartbeat: str | None, *, operator: bool | None = None) -> bool:
        reported = {
            "type": "UpstreamOperatorUp",
            "status": str(operator),
            "message": "Deployment a/b has no available replica",
        }
        status = {"lastHeartbeat": heartbeat, "conditions": [] if operator is None else [reported]}
        return self.providers.see("acme", {"metadata": {"name": "acme"}, "status": status})

    def after(self, seconds: float) -> str | None:
        """The reason when so much time has passed."""
        self.clock.now += seconds
        health = self.providers.healths().get("acme")
        return health.reason if health else None


def test_one_that_was_never_registered_is_reported_at_once() -> None:
    seen = Observed()
    seen.providers.expect("acme")

    assert seen.after(0) == LOST
    assert "acme is not registered" in seen.providers.healths()["acme"].message
    seen.config("10:00")
    assert seen.after(0) is None


def test_silence_counts_from_first_sight_until_a_change() -> None:
    seen = Observed()
    seen.config("10:00")

    assert seen.after(0) is None
    assert seen.after(TIMEOUT - 1) is None
    assert seen.after(1) == LOST
    seen.config("10:00")
    assert seen.after(0) == LOST
    seen.config("10:05")
    assert seen.after(0) == SEEN
    assert seen.after(TIMEOUT - 1) == SEEN
    assert seen.after(1) == LOST


def test_provider_without_registration_is_lost_after_timeout() -> None:
    seen = Observed()

    assert seen.providers.expect("acme") is True
    assert seen.providers.expect("acme") is False
    assert seen.providers.registered() == {}
    assert seen.after(TIMEOUT) == LOST
    assert "is not registered" in seen.providers.healths()["acme"].message


def test_deleted_registration_is_lost_after_timeout() -> None:
    seen = Observed()
    assert seen.config("10:00") is True
    seen.config("10:01")

    assert seen.providers.see("acme", None) is True
    assert seen.providers.see("acme", None) is False
    assert seen.after(TIMEOUT - 1) == SEEN
    assert seen.after(1) == LOST
    # Registered again, from a backup say: that is no heartbeat yet.
    assert seen.config("10:01") is True
    assert seen.after(0) is None
    seen.config("10:02")
    assert seen.after(0) == SEEN


def test_operator_is_down_after_the_timeout() -> None:
    seen = Observed()
    seen.config("10:00", operator=True)
    seen.config("10:01", operator=False)

    for minute in ("10:02", "10:03"):
        assert seen.after(60) is None
        seen.config(minute, operator=False)
    assert seen.after(60) == DOWN
    assert "Deployment a/b has no available replica" in seen.providers.healths()["acme"].message
    seen.config("10:04", operator=True)
    assert seen.after(0) == SEEN


def test_short_operator_outage_is_not_reported() -> None:
    seen = Observed()
    seen.config("10:00", operator=True)
    seen.config("10:01", operator=False)
    assert seen.after(TIMEOUT - 1) is None

    seen.config("10:02", operator=True)
    seen.config("10:03", operator=False)

    assert seen.after(TIMEOUT - 1) is None


def test_unknown_operator_state_is_not_down() -> None:
    seen = Observed()
    seen.config("10:00", operator=False)
    seen.after(TIMEOUT - 1)
    seen.config("10:01", operator=False)
    assert seen.after(1) == DOWN

    seen.config("10:02")

    assert seen.after(0) == SEEN


def test_provider_health_message_is_stable_over_time() -> None:
    seen = Observed()
    seen.config("10:00")
    seen.after(TIMEOUT)
    before = seen.providers.healths()

    seen.after(3600)

    assert seen.providers.healths() == before
    assert before["acme"].message == (
        "Provider acme has sent no heartbeat for 180 s: running pods are not affected, but changes wait until it "
        "is back; "
        "ask an administrator to check that kubefoundry-provider-acme is running"
    )


def test_when_to_look_again() -> None:
    seen = Observed()
    assert seen.providers.again() is None
    seen.config("10:00")
    seen.after(30)
    seen.config("10:01", operator=False)
    seen.after(10)

    assert seen.providers.again() == TIMEOUT - 10
    assert seen.providers.lost_in() == {"acme": TIMEOUT - 10}
    seen.after(TIMEOUT)
    assert seen.providers.again() is None
    assert seen.providers.lost_in() == {"acme": 0.0}


def standing(status: str, reason: str) -> dict[str, Any]:
    return {
        "type": "ProviderHealthy",
        "status": status,
        "reason": reason,
        "message": "as it was",
        "observedGeneration": 2,
        "lastTransitionTime": "t",
    }


@pytest.mark.parametrize(
    ("live", "healths", "expected"),
    [
        pytest.param(None, [Health("HeartbeatSeen", "now")], None, id="all is well and always was"),
        pytest.param(
            None,
            [Health("HeartbeatLost", "now")],
            ("False", LOST, "now", 3),
            id="lost for the first time",
        ),
        pytest.param(
            standing("True", SEEN),
            [Health("HeartbeatLost", "now")],
            ("False", LOST, "now", 3),
            id="lost again",
        ),
        pytest.param(
            standing("False", LOST),
            [Health("HeartbeatSeen", "now")],
            ("True", SEEN, "now", 3),
            id="back",
        ),
        pytest.param(
            standing("False", LOST),
            [Health("UpstreamOperatorDown", "now")],
            ("False", DOWN, "now", 3),
            id="back, and its operator is down",
        ),
        pytest.param(
            standing("False", LOST),
            [None],
            ("False", LOST, "as it was", 2),
            id="not known yet: it stands",
        ),
        pytest.param(None, [None], None, id="not known yet, nothing said"),
        pytest.param(standing("False", LOST), [], None, id="no provider"),
        pytest.param(
            None,
            [Health("HeartbeatSeen", "now"), Health("HeartbeatLost", "the one that serves")],
            ("False", LOST, "the one that serves", 3),
            id="lost, and it serves until the chosen one takes over",
        ),
        pytest.param(
            None,
            [None, Health("HeartbeatLost", "the one that serves")],
            ("False", LOST, "the one that serves", 3),
            id="lost, and of the chosen one nothing is known",
        ),
        pytest.param(
            None,
            [Health("HeartbeatLost", "the chosen one"), Health("HeartbeatLost", "the one that serves")],
            ("False", LOST, "the chosen one", 3),
            id="both are lost",
        ),
    ],
)
def test_condition_reports_the_first_unhealthy_provider(
    live: dict[str, Any] | None,
    healths: list[Health | None],
    expected: tuple[str, str, str, int] | None,
) -> None:
    reported = provider_healthy(live, healths, generation=3)

    if reported is not None:
        assert "lastTransitionTime" not in reported
        assert (
            reported["status"],
            reported["reason"],
            reported["message"],
            reported["observedGeneration"],
        ) == expected
    else:
        assert expected is None
