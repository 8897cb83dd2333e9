"""Tests that ProviderDegraded does not follow each step of an outage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest

from kubefoundry_llamastack import report
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_llamastack.snapshot import Snapshot
from support.llamastack import condition_of, container, reason

Make = Callable[..., Distribution]
Object = dict[str, Any]

DEGRADED: Final = "ProviderDegraded"
BACK_OFF: Final[Object] = {"waiting": {"reason": "CrashLoopBackOff"}}
CRASH: Final[Object] = {**BACK_OFF, "last": {"exitCode": 3, "reason": "Error"}}
MEMORY: Final[Object] = {**BACK_OFF, "last": {"exitCode": 137, "reason": "OOMKilled"}}
PULL: Final[Object] = {"waiting": {"reason": "ImagePullBackOff"}}
READY: Final[Object] = {"running": {}}
UNREADY: Final[Object] = {**READY, "ready": False}


def reasons_of(make: Make, runs: Iterable[tuple[int, Object, Object]]) -> tuple[list[str], list[str]]:
    """Return the reason of ProviderDegraded after each step, and the Events' reasons.

    Args:
        make: Makes a CR.
        runs: For each step: the second, and the state of both services.
    """
    guard: Object = {"image": "example.com/g:1", "service": {}}
    guards = [{"providerId": name, **guard} for name in ("a", "b")]
    cr = make(externalProviders={"safety": guards})
    status: Object = {}
    seen, events = [], []
    for count, (second, *states) in enumerate(runs):
        time = f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
        after = report.status(Snapshot(cr, pods=[pod(count, *states)]), status, time)
        events += [event[1] for event in report.announcements(status, after)]
        provider = condition_of(after, DEGRADED).get("message", "").partition("Provider: ")[2][:1]
        seen.append(f"{provider} {reason(after, DEGRADED)}".strip())
        status = after
    return seen, events


def pod(count: int, *states: Object) -> Object:
    """Return a pod with both services. Each failed step is one more restart."""
    installed = [container(f"external-provider-{name}", terminated={"exitCode": 0}) for name in ("a", "b")]
    services = []
    for name, state in zip(("a", "b"), states, strict=True):
        facts = {"restartCount": count if "last" in state else 0, "started": "running" in state}
        parts = {key: value for key, value in state.items() if key != "ready"}
        ready = state.get("ready", "running" in state)
        services.append({**container(f"provider-{name}", **parts), **facts, "ready": ready})
    server = {**container("llama-stack", **READY), "started": True}
    status = {"initContainerStatuses": [*installed, *services], "containerStatuses": [server]}
    return {"metadata": {"name": "chat-1", "namespace": "team"}, "status": status}


def test_services_that_fail_in_turns_are_one_outage(make: Make) -> None:
    turns = [(READY, CRASH), (MEMORY, READY), *[(READY, CRASH), (MEMORY, READY)] * 4]

    seen, events = reasons_of(make, ((30 * step, *turn) for step, turn in enumerate(turns)))

    assert {*seen} == {"b ServiceCrashLoop"}
    assert [event for event in events if event in ("ServiceCrashLoop", "ServiceOutOfMemory")] == [
        "ServiceCrashLoop"
    ]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([(0, CRASH), (20, UNREADY), (40, CRASH)], ["ServiceCrashLoop"] * 3),
        ([(0, CRASH), (20, MEMORY)], ["ServiceCrashLoop"] * 2),
        ([(0, CRASH), (20, UNREADY), (80, UNREADY)], ["ServiceCrashLoop"] * 2 + ["ServiceNotReady"]),
        ([(0, UNREADY), (20, CRASH)], ["ServiceNotReady", "ServiceCrashLoop"]),
        ([(0, PULL), (20, CRASH)], ["ServiceImagePullFailed", "ServiceCrashLoop"]),
        ([(0, CRASH), (20, PULL)], ["ServiceCrashLoop", "ServiceImagePullFailed"]),
    ],
    ids=["unready between crashes", "two kinds of end", "stays unready", "crash", "image came", "image went"],
)
def test_reason_changes_only_with_the_outage(
    make: Make, runs: list[tuple[int, Object]], expected: list[str]
) -> None:
    seen, _ = reasons_of(make, ((second, state, READY) for second, state in runs))

    assert seen == [f"a {item}" for item in expected]


def test_other_failing_service_is_reported_after_recovery(make: Make) -> None:
    runs = [(0, MEMORY, READY), (10, READY, CRASH), (69, READY, CRASH), (70, READY, CRASH)]

    seen, _ = reasons_of(make, runs)

    assert seen == [*["a ServiceOutOfMemory"] * 3, "b ServiceCrashLoop"]
