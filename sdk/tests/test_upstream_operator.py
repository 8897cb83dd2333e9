"""What a Deployment and a Lease show of the operator they stand for; by a clock that the test moves."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from aiohttp import web

from kubefoundry_sdk._provider.upstream_kind import Operator
from kubefoundry_sdk._provider.watch import upstream_operator
from kubefoundry_sdk._provider.watch.operator_settings import OperatorSettings
from kubefoundry_sdk._provider.watch.trusted_namespaces import TrustedNamespaces
from kubefoundry_sdk._provider.watch.upstream_operator import (
    Evidence,
    Judge,
    OperatorWatch,
    unavailable,
    unheld,
)
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


def anywhere(namespace: str) -> bool:
    return True


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
def test_operator_is_down_if_no_deployment_is_available(
    available: list[int | None], down: str | None
) -> None:
    evidence = Evidence(unavailable, Clock(), anywhere)

    evidence.replace([deployment(count, f"here-{number}") for number, count in enumerate(available)], "1")

    assert evidence.down() == down
    assert len(evidence.seen) == len(available)


def test_operator_is_not_down_after_its_deployment_is_deleted() -> None:
    evidence = Evidence(unavailable, Clock(), anywhere)
    evidence.put(deployment(0))

    evidence.remove(deployment(0))

    assert evidence.down() is None
    assert not evidence.seen


def test_operator_lease_expires_unless_renewed() -> None:
    clock = Clock()
    evidence = Evidence(unheld, clock, anywhere)
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
        "Lease here/leader has no holder (delete it if the operator runs without leader election)"
    )
    evidence.put(lease(4))
    evidence.alive()
    assert evidence.down() is None


@pytest.mark.parametrize("holder", ["", None])
def test_operator_is_down_if_its_lease_was_released(holder: str | None) -> None:
    evidence = Evidence(unheld, Clock(), anywhere)

    evidence.put(lease(1, holder))

    assert evidence.down()


def test_held_lease_outweighs_an_older_one() -> None:
    clock = Clock()
    evidence = Evidence(unheld, clock, anywhere)
    evidence.replace([lease(1, namespace="before"), lease(2, namespace="now")], "2")

    clock.now += 60
    evidence.put(lease(3, namespace="now"))
    evidence.alive()

    assert evidence.down() is None


def test_operator_lease_keeps_its_age_in_a_new_list() -> None:
    clock = Clock()
    evidence = Evidence(unheld, clock, anywhere)
    evidence.replace([lease(1)], "1")

    clock.now += 16
    evidence.replace([lease(1)], "9")
    evidence.alive()

    assert evidence.down()


@pytest.mark.parametrize("judge", [unavailable, unheld])
def test_operator_outside_trusted_namespaces_is_ignored(judge: Judge) -> None:
    evidence = Evidence(judge, Clock(), lambda namespace: namespace == "here")
    down = deployment(0) if judge is unavailable else lease(1, None)
    for namespace in ("elsewhere", "everywhere"):
        evidence.put({**down, "metadata": {**down["metadata"], "namespace": namespace}})

    assert (evidence.down(), evidence.seen) == (None, [])
    evidence.put(down)
    assert evidence.down()
    assert evidence.seen == [down]


def labelled(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"kubefoundry.ai/operators": "true"}}}


def test_operator_namespace_counts_by_label_or_by_name() -> None:
    received: list[frozenset[str]] = []
    every = ("named", "one", "two")
    namespaces = TrustedNamespaces(
        ["named"], lambda: received.append(frozenset(filter(namespaces.trusts, every)))
    )

    namespaces.replace([], "1")
    namespaces.replace([], "2")
    namespaces.put(labelled("one"))
    namespaces.put(labelled("one"))
    namespaces.put(labelled("two"))
    namespaces.remove(labelled("one"))
    namespaces.refused()

    assert received == [{"named"}, {"named", "one"}, set(every), {"named", "two"}, {"named"}]


async def test_settings_wait_for_a_denied_permission_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An API server that has just started denies everything; the Deployment that it shows next tells the settings."""
    monkeypatch.setattr(upstream_operator, "PERMISSION_CHECKS", (0.0,))
    operator = Operator("operator", ("here",), lambda obj: obj["status"])
    statuses: list[object] = []
    for denials in (1, 2):
        received = asyncio.Event()
        settings = OperatorSettings(operator, received.set)
        async with wire(Server(denials).answer) as api:
            watch = OperatorWatch(api.client, operator, settings, lambda: None, clock=time.monotonic)
            async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
                watching = group.create_task(watch.run())
                await received.wait()
                watching.cancel()
        statuses.append(settings.values)

    assert statuses == [{"availableReplicas": 1}, {}]


class Server:
    """Denies the Deployments so often, and has one that is up."""

    def __init__(self, denials: int) -> None:
        self._denials = denials

    def answer(self, asked: Asked) -> web.Response:
        if asked.method == "POST":
            if asked.body["spec"]["resourceAttributes"]["resource"] == "namespaces":
                return ok({"status": {"allowed": True}})
            self._denials -= 1
            return ok({"status": {"allowed": self._denials < 0}})
        if "watch" in asked.query:
            return events()
        items = [] if asked.path.endswith("/namespaces") else [deployment(1)]
        return ok({"metadata": {"resourceVersion": "1"}, "items": items})
