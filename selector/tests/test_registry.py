"""Which changes of a registration bear on a choice, and when a provider counts as lost."""

from __future__ import annotations

from typing import Any

import pytest

from kubefoundry_selector.registry import SHORT, Registry

TIMEOUT = 180.0


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def beating(number: int, config: Any) -> Any:
    return config("kaito", lastHeartbeat=f"2026-02-04T10:00:{number:02}Z")


def test_only_what_bears_on_a_choice_is_reported(config: Any) -> None:
    registry = Registry(Clock(), TIMEOUT)

    assert registry.see("kaito", beating(0, config)) is True
    assert registry.see("kaito", beating(1, config)) is False
    assert registry.see("kaito", config("kaito", ready=False)) is True
    assert (
        registry.see("kaito", config("kaito", {"capabilities": {"engines": ["vllm"]}}, ready=False)) is True
    )
    assert registry.see("kaito", None) is True
    assert registry.see("kaito", None) is False


def test_healthy_provider_is_read_without_a_copy(config: Any) -> None:
    clock = Clock()
    registry = Registry(clock, TIMEOUT)
    registry.see("kaito", beating(0, config))
    first = registry.get("kaito")

    assert first is not None
    assert registry.providers() == [first]
    assert registry.get("kaito") is first

    clock.now += TIMEOUT + 1
    silent = registry.get("kaito")
    assert silent is not None
    assert (silent.heartbeat_fresh, silent.outage) == (False, "short")
    assert first.heartbeat_fresh


def test_provider_is_lost_after_three_minutes_of_silence(config: Any) -> None:
    clock = Clock()
    registry = Registry(clock, TIMEOUT)
    registry.see("kaito", beating(0, config))

    clock.now += TIMEOUT
    assert registry.providers()[0].heartbeat_fresh
    clock.now += 1
    assert not registry.providers()[0].heartbeat_fresh

    assert registry.see("kaito", beating(0, config)) is False
    assert registry.see("kaito", beating(1, config)) is True
    assert registry.providers()[0].heartbeat_fresh


def outage(registry: Registry) -> Any:
    return registry.providers()[0].outage


def test_outage_is_short_for_five_minutes_after_heartbeat(config: Any) -> None:
    clock = Clock()
    registry = Registry(clock, TIMEOUT)
    registry.see("kaito", beating(0, config))

    clock.now += TIMEOUT
    assert (outage(registry), registry.end_of_short_outage()) == (None, None)
    clock.now += 1
    assert (outage(registry), registry.end_of_short_outage()) == ("short", SHORT - 1)
    clock.now += SHORT - 1
    assert (outage(registry), registry.end_of_short_outage()) == ("long", None)

    assert registry.see("kaito", beating(1, config)) is True
    assert (outage(registry), registry.end_of_short_outage()) == (None, None)


def test_outage_is_short_for_five_minutes_after_ready(config: Any) -> None:
    clock = Clock()
    registry = Registry(clock, TIMEOUT)
    registry.see("kaito", beating(0, config))
    clock.now += 100
    registry.see("kaito", config("kaito", ready=False))
    clock.now += 10

    # It goes on reporting that it is not ready: that begins no other outage.
    registry.see("kaito", config("kaito", ready=False, lastHeartbeat="2026-02-04T10:01:00Z"))

    assert (outage(registry), registry.end_of_short_outage()) == ("short", SHORT - 10)
    clock.now += SHORT - 10
    assert outage(registry) == "long"


@pytest.mark.parametrize(
    "status", [{"ready": False}, {"ready": None}, {"ready": False, "lastHeartbeat": None}]
)
def test_what_was_never_ready_has_no_outage(config: Any, status: dict[str, Any]) -> None:
    """Its upstream is not installed: a model that waits for it would wait forever."""
    clock = Clock()
    registry = Registry(clock, TIMEOUT)
    registry.see("kaito", config("kaito", **status))

    clock.now += 1
    assert (outage(registry), registry.end_of_short_outage()) == (None, None)
    clock.now += TIMEOUT
    assert (outage(registry), registry.end_of_short_outage()) == (None, None)


def test_deleted_registration_counts_as_a_short_outage(config: Any) -> None:
    clock = Clock()
    registry = Registry(clock, TIMEOUT)
    registry.see("kaito", beating(0, config))

    assert registry.see("kaito", None)
    assert outage(registry) == "short"
    assert [offered.healthy for offered in registry.providers()] == [False]

    registry.see("kaito", config("kaito", ready=False))
    assert outage(registry) == "short"

    registry.see("kaito", None)
    clock.now += SHORT
    assert registry.get("kaito") is None
    assert registry.providers() == []


def test_deleted_registration_that_was_never_ready_is_forgotten(config: Any) -> None:
    registry = Registry(Clock(), TIMEOUT)
    registry.see("kaito", config("kaito", ready=False))

    registry.see("kaito", None)

    assert registry.get("kaito") is None
