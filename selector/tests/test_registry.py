"""Which changes of a registration bear on a choice, and when a provider counts as lost."""

from __future__ import annotations

from typing import Any

from kubefoundry_selector.registry import Registry

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


def test_lost_after_three_minutes_without_a_change_by_our_clock_and_back_with_the_next(config: Any) -> None:
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
