"""The steps of a start: which pod decides, and how many seconds each step took."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kubefoundry_sdk._api import crd
from kubefoundry_sdk._api.pod_status import reached
from kubefoundry_sdk._api.start_text import describe_start
from kubefoundry_sdk._provider.reconcile.start import (
    STEPS,
    StartingPod,
    alive,
    decide,
    instant,
    is_complete,
)
from kubefoundry_sdk.testing import structural

APPLIED = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW = APPLIED + timedelta(seconds=100)
START_SCHEMA: Final = crd.model_deployments()["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
    "properties"
]["status"]["properties"]["start"]


def at(seconds: float) -> datetime:
    return APPLIED + timedelta(seconds=seconds)


def pod(name: str, *seconds: float | None) -> StartingPod:
    times = [None if second is None else at(second) for second in seconds]
    return StartingPod(name, (*times, *[None] * (len(STEPS) - len(times))))


def line(*pods: StartingPod, now: datetime = NOW, is_serving: bool = False) -> str:
    start = decide(pods, APPLIED, now, is_serving=is_serving)
    return describe_start(start.status, now) if start else ""


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([], "waits for its pod, 100s so far"),
        ([pod("a", 1)], "pod a: created 1s, waits for a node, 99s so far"),
        ([pod("a", 1, 1)], "pod a: created 1s, scheduled 0s, waits for its containers, 99s so far"),
        (
            [pod("a", 1, 3, 10)],
            "pod a: created 1s, scheduled 2s, containers started 7s, waits for readiness, 90s so far",
        ),
        ([pod("a", 1, 3, 10, 70)], "pod a: created 1s, scheduled 2s, containers started 7s, ready 60s"),
        # The slowest pod waits for an earlier step, or has been waiting for longer.
        ([pod("a", 1, 3), pod("b", 50)], "pod b: created 50s, waits for a node, 50s so far"),
        ([pod("a", 40), pod("b", 2)], "pod b: created 2s, waits for a node, 98s so far"),
        ([pod("b", 2), pod("a", 2)], "pod a: created 2s, waits for a node, 98s so far"),
        (
            [pod("a", 0, 0, 0, 9), pod("b", 0, 0, 0, 8)],
            "pod a: created 0s, scheduled 0s, containers started 0s, ready 9s",
        ),
        # A pod of an earlier apply does not count. It may stay, so it is unknown whether another one follows.
        ([pod("old", -1, 0, 0, 0), pod("a", 1)], "pod a: created 1s, waits for a node, 99s so far"),
        ([pod("old", -1)], ""),
        ([pod("a", 0)], "pod a: created 0s, waits for a node, 100s so far"),
        ([pod("a", None)], ""),
        # A step without a time is not listed if a later one is reached.
        (
            [pod("a", 1, None, 4)],
            "pod a: created 1s, containers started 3s, waits for readiness, 96s so far",
        ),
        # The clock of a node is behind.
        (
            [pod("a", 10, 12, 5, 20)],
            "pod a: created 10s, scheduled 2s, containers started 0s, ready 8s",
        ),
        ([pod("a", 150)], "pod a: created 150s, waits for a node, 0s so far"),
        # Our clock has not reached these times.
        (
            [pod("a", 1, 2, 3, 1e9)],
            "pod a: created 1s, scheduled 1s, containers started 1s, waits for readiness, 97s so far",
        ),
        ([pod("a", 1, 1e9, 3, 9)], "pod a: created 1s, containers started 2s, ready 6s"),
        ([pod("a", 200)], ""),
    ],
)
def test_start_shows_the_steps_of_the_slowest_pod(pods: list[StartingPod], expected: str) -> None:
    assert line(*pods) == expected


def test_start_without_a_pod_is_reported_after_five_seconds() -> None:
    assert line(now=at(4.9)) == ""
    assert line(now=at(5)) == "waits for its pod, 5s so far"
    assert line(now=at(-60)) == ""


def test_only_ready_pods_count_once_the_model_serves() -> None:
    ready, waiting = pod("a", 1, 1, 2, 9), pod("b", 1)

    assert line(waiting, ready) == "pod b: created 1s, waits for a node, 99s so far"
    assert (
        line(waiting, ready, is_serving=True)
        == "pod a: created 1s, scheduled 0s, containers started 1s, ready 7s"
    )
    assert line(waiting, is_serving=True) == line(is_serving=True) == ""


SECONDS = st.none() | st.integers(-100, 1000)
PODS = st.lists(st.builds(pod, st.sampled_from("abcdef"), SECONDS, SECONDS, SECONDS, SECONDS), max_size=5)
HISTORIES = st.lists(st.tuples(PODS, st.integers(-50, 1200), st.booleans()), max_size=6)


@given(HISTORIES)
def test_start_of_any_history_is_plausible(history: list[tuple[list[StartingPod], int, bool]]) -> None:
    # Pods appear, vanish and are replaced, their times are in any order, and our clock goes back.
    for pods, now, is_serving in history:
        start = decide(pods, APPLIED, at(now), is_serving=is_serving)
        if start is None:
            continue
        status = start.status
        names = [step["name"] for step in status["steps"]]

        assert names == sorted(names, key=STEPS.index) and len(set(names)) == len(names)
        assert all(step.get("seconds", 0) >= 0 for step in status["steps"])
        assert ["since" in step for step in status["steps"][:-1]] == [False] * (len(names) - 1)
        assert is_complete(status) == ("since" not in status["steps"][-1])
        assert is_complete(status) or not is_serving
        assert start.since >= APPLIED
        total = sum(step.get("seconds", 0) for step in status["steps"])
        assert total <= (start.since - APPLIED).total_seconds() < total + 1
        assert status.get("pod", "") in {"", *(item.name for item in pods)}
        assert start == decide(pods[::-1], APPLIED, at(now), is_serving=is_serving) or len(
            {item.name for item in pods}
        ) < len(pods)


def time_of_a_server() -> st.SearchStrategy[str]:
    zones = st.timezones() | st.just(timezone(timedelta(hours=14))) | st.just(timezone(-timedelta(hours=14)))
    extremes = st.sampled_from([datetime.min, datetime.max, APPLIED.replace(tzinfo=None)])
    return st.builds(
        lambda time, zone: time.replace(tzinfo=zone).isoformat(), st.datetimes() | extremes, zones
    )


TIMES = time_of_a_server() | st.sampled_from([None, 7, "", "never", "2026-03-01T12:00:09"])
REACHED = st.fixed_dictionaries({}, optional=dict.fromkeys(STEPS[1:], TIMES))


@example([("2026-03-01T12:00:00Z", {"PodScheduled": "9999-12-31T23:59:59Z"})], "2026-03-01T12:00:00Z", False)
@example([("2026-03-01T12:00:00Z", {"PodReady": "2026-03-01T12:00:09Z"})], "0001-01-01T00:00:00Z", True)
@example([], "0001-01-01T00:00:00+14:00", False)
@given(st.lists(st.tuples(TIMES, REACHED), max_size=3), time_of_a_server(), st.booleans())
def test_start_is_valid_for_the_crd_whatever_pods_report(
    reports: list[tuple[Any, dict[str, Any]]], applied: str, is_serving: bool
) -> None:
    pods = alive(
        {"metadata": {"name": "a", "creationTimestamp": created}, "status": {}, "reached": times}
        for created, times in reports
    )
    began = instant(applied)
    start = decide(pods, began, NOW, is_serving=is_serving) if began else None

    if start is not None:
        assert list(structural.problems(start.status, START_SCHEMA, "")) == []
        assert all(
            re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", step.get("since", "2026-01-01T00:00:00Z"))
            for step in start.status["steps"]
        )


def container(state: dict[str, Any]) -> dict[str, Any]:
    return {"name": "c", "state": state}


SINCE = "2026-03-01T12:00:09Z"
RUNNING = container({"running": {"startedAt": SINCE}})


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, {}),
        ({"containerStatuses": []}, {}),
        ({"containerStatuses": [RUNNING, container({"waiting": {"reason": "ErrImagePull"}})]}, {}),
        ({"containerStatuses": [container({"running": {}})]}, {}),
        (
            {"containerStatuses": [container({"running": {"startedAt": "2026-03-01T12:00:01Z"}}), RUNNING]},
            {"ContainersStarted": SINCE},
        ),
        ({"conditions": [{"type": "PodScheduled", "status": "False", "lastTransitionTime": SINCE}]}, {}),
        (
            {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": SINCE}]},
            {"PodScheduled": SINCE},
        ),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, {}),
        (
            {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": SINCE}]},
            {"PodReady": SINCE},
        ),
        ({"conditions": "corrupt", "containerStatuses": [7]}, {}),
    ],
)
def test_step_is_reached_once_the_pod_reports_its_time(
    status: dict[str, Any], expected: dict[str, str]
) -> None:
    assert reached(status) == expected


def test_pods_that_never_run_again_do_not_count() -> None:
    meta = {"name": "a", "creationTimestamp": SINCE}
    [live, naive, corrupt] = alive(
        [
            {"metadata": meta, "status": {}},
            {"metadata": {**meta, "deletionTimestamp": SINCE}, "status": {}},
            {"metadata": meta, "status": {"phase": "Failed"}},
            {"metadata": meta, "status": {}, "reached": {"PodReady": "2026-03-01T12:00:09"}},
            {"metadata": {"name": "a", "creationTimestamp": "never"}, "status": {}},
        ]
    )

    assert (live.created, live.is_ready) == (at(9), False)
    assert not naive.is_ready
    assert corrupt.created is None


@pytest.mark.parametrize(
    "start",
    [
        None,
        7,
        {"steps": "x"},
        {"pod": "a", "steps": [{}, 7, {"name": "PodReady"}, {"name": "Other", "seconds": 3}]},
        {"steps": [{"name": "PodReady", "seconds": "soon"}]},
    ],
)
def test_corrupt_start_has_no_text(start: Any) -> None:
    assert describe_start(start, NOW) == ""


def test_text_without_a_clock_names_no_time_so_far() -> None:
    waiting = {"steps": [{"name": "PodCreated", "since": SINCE}]}

    assert describe_start(waiting) == "waits for its pod"
    assert describe_start({"steps": [{"name": "PodCreated", "since": "never"}]}, NOW) == "waits for its pod"
