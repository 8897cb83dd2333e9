"""What a Deployment and a Lease show of the operator they stand for; by a clock that the test moves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_sdk.provider import upstream_operator
from kubefoundry_sdk.provider.contract import Operator
from kubefoundry_sdk.provider.operator_settings import OperatorSettings
from kubefoundry_sdk.provider.upstream_operator import Evidence, OperatorWatch, unavailable, unheld
from support.waiting import SECONDS
from support.wire import Asked, events, ok, wire


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def deployment(available: int | None, namespace: str = "here", version: int = 1) -> dict[str, Any]:
    return {
        "metadata": {"name": "operator", "namespace": namespace, "resourceVersion": str(version)},
        "status": {"availableReplicas": available} if available is not None else {},
    }


def lease(version: int, holder: str | None = "a", namespace: str = "here") -> dict[str, Any]:
    return {
        "metadata": {"name": "leader", "namespace": namespace, "resourceVersion": str(version)},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15},
    }


@pytest.mark.parametrize(
    ("available", "down"),
    [
        pytest.param([], None, id="none there: nothing is known"),
        pytest.param([1], None, id="one available"),
        pytest.param([0], "Deployment here-0/operator has no available replica", id="none available"),
        pytest.param([None], "Deployment here-0/operator has no available replica", id="not reported"),
        pytest.param([0, 2], None, id="another one is up"),
        pytest.param([0, 0], "Deployment here-0/operator has no available replica", id="both down"),
    ],
)
def test_a_deployment(available: list[int | None], down: str | None) -> None:
    evidence = Evidence(unavailable, Clock())

    evidence.replace([deployment(count, f"here-{number}") for number, count in enumerate(available)], "1")

    assert evidence.down() == down
    assert len(evidence.seen) == len(available)


def test_a_deployment_that_is_gone_shows_nothing() -> None:
    evidence = Evidence(unavailable, Clock())
    evidence.put(deployment(0))

    evidence.remove(deployment(0))

    assert evidence.down() is None
    assert not evidence.seen


def test_a_lease_that_is_renewed_is_held_and_one_that_is_not_runs_out() -> None:
    clock = Clock()
    evidence = Evidence(unheld, clock)
    evidence.replace([lease(1)], "1")

    for version in (2, 3):
        clock.now += 10
        evidence.put(lease(version))
        evidence.alive()
        assert evidence.down() is None
    clock.now += 16
    assert evidence.down() is None, "nothing was heard of the API server meanwhile"
    evidence.alive()

    assert evidence.down() == (
        "Lease here/leader is held by nobody (delete it where the operator runs without leader election)"
    )
    evidence.put(lease(4))
    evidence.alive()
    assert evidence.down() is None


@pytest.mark.parametrize("holder", ["", None])
def test_a_lease_that_was_given_back_is_held_by_nobody(holder: str | None) -> None:
    evidence = Evidence(unheld, Clock())

    evidence.put(lease(1, holder))

    assert evidence.down()


def test_a_lease_of_an_earlier_installation_does_not_count_beside_one_that_is_held() -> None:
    clock = Clock()
    evidence = Evidence(unheld, clock)
    evidence.replace([lease(1, namespace="before"), lease(2, namespace="now")], "2")

    clock.now += 60
    evidence.put(lease(3, namespace="now"))
    evidence.alive()

    assert evidence.down() is None


def test_a_new_listing_makes_nothing_younger() -> None:
    clock = Clock()
    evidence = Evidence(unheld, clock)
    evidence.replace([lease(1)], "1")

    clock.now += 16
    evidence.replace([lease(1)], "9")
    evidence.alive()

    assert evidence.down()


async def test_settings_wait_for_a_permission_that_is_denied_once_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An API server that has just started denies everything; the Deployment that it shows next tells the settings."""
    monkeypatch.setattr(upstream_operator, "ASKING", (0.0,))
    operator = Operator("operator", lambda obj: obj["status"])
    known = []
    for denials in (1, 2):
        told = asyncio.Event()
        settings = OperatorSettings(operator, told.set)
        async with wire(Server(denials).answer) as made:
            watch = OperatorWatch(made.client, operator, settings, lambda: None)
            async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
                watching = group.create_task(watch.run())
                await told.wait()
                watching.cancel()
        known.append(settings.values)

    assert known == [{"availableReplicas": 1}, {}]


class Server:
    """Denies so often, and has one Deployment that is up."""

    def __init__(self, denials: int) -> None:
        self._denials = denials

    def answer(self, asked: Asked) -> web.Response:
        if asked.method == "POST":
            self._denials -= 1
            return ok({"status": {"allowed": self._denials < 0}})
        if "watch" in asked.query:
            return events()
        return ok({"metadata": {"resourceVersion": "1"}, "items": [deployment(1)]})
