"""Decides the steps of a model's start: pure functions from its pods and a clock (contract §3, start).

The pods that the last apply started count: those that were created at or after it. The slowest of them decides. All
times are those that pods report, so a step may appear to be short, but never negative, if the clocks of two nodes
differ. A time that is more than `SKEW` ahead of our own clock counts as unreported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, get_args

from kubefoundry_sdk._api.conditions import rfc3339
from kubefoundry_sdk._api.fields import MAX_INT32
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.status import StepName
from kubefoundry_sdk._api.untrusted import mapping, mappings
from kubefoundry_sdk._provider.health.pod_causes import is_finished

STEPS: Final[tuple[StepName, ...]] = get_args(StepName)
"""The steps of a start, in their order."""

SILENCE: Final = timedelta(seconds=5)
"""The time for which a start without a pod is not reported, because most upstream systems create pods in less."""

SKEW: Final = timedelta(seconds=60)
"""How far the clock of a node may be ahead of ours. A later time is not one that the pod has reached."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""No clock of a cluster is earlier, and `rfc3339` would write a year before 1000 without four digits."""


@dataclass(frozen=True, slots=True)
class StartingPod:
    """A pod that may run, and when it reached the steps of its start.

    Attributes:
        name: The pod's name.
        reached: The time of each step in STEPS, None if the pod does not report it.
    """

    name: str
    reached: tuple[datetime | None, ...]

    @property
    def created(self) -> datetime | None:
        """When the pod was created, None if it is unknown."""
        return self.reached[0]

    @property
    def is_ready(self) -> bool:
        """Whether the pod reports that it is ready."""
        return self.reached[-1] is not None

    def until(self, latest: datetime) -> StartingPod:
        """Return the pod without the times after `latest`."""
        times = tuple(time if time is not None and time <= latest else None for time in self.reached)
        return StartingPod(self.name, times)


@dataclass(frozen=True, slots=True)
class Start:
    """The start of the slowest pod.

    Attributes:
        pod: The pod's name; empty while there is none.
        seconds: The steps that the pod has reached, with the seconds that each took.
        waiting: The step for which the pod waits, None if it has reached the last one.
        since: When the last step was reached.
    """

    pod: str
    seconds: tuple[tuple[StepName, int], ...]
    waiting: StepName | None
    since: datetime

    @property
    def status(self) -> dict[str, Any]:
        """The start as `status.start`."""
        steps: list[dict[str, Any]] = [{"name": name, "seconds": value} for name, value in self.seconds]
        if self.waiting:
            steps.append({"name": self.waiting, "since": rfc3339(self.since)})
        return {"pod": self.pod, "steps": steps} if self.pod else {"steps": steps}


def is_complete(status: Mapping[str, Any]) -> bool:
    """Check whether the start of that `status.start` has reached its last step."""
    return any(step.get("name") == STEPS[-1] and "seconds" in step for step in mappings(status.get("steps")))


def decide(
    pods: Sequence[StartingPod], applied: datetime, now: datetime, *, is_serving: bool
) -> Start | None:
    """Return the start of the slowest pod, or None if nothing is known about the start.

    Args:
        pods: All pods that may run, in any order.
        applied: When the provider last applied the upstream object.
        now: The current time.
        is_serving: Whether the model serves. Only pods that are ready then count.
    """
    counted = [
        pod
        for pod in (pod.until(now + SKEW) for pod in pods)
        if pod.created is not None and pod.created >= applied and (pod.is_ready or not is_serving)
    ]
    if counted:
        return min((_start(pod, applied) for pod in counted), key=_speed)
    if pods or is_serving or now - applied < SILENCE:
        # Pods of an earlier apply may stay, so it is unknown whether others follow.
        return None
    return Start("", (), STEPS[0], applied)


def _speed(start: Start) -> tuple[int, float, str]:
    """Return a key that is lowest for the slowest start: it waits for the earliest step, and longest."""
    since = start.since.timestamp()
    if start.waiting is None:
        return len(STEPS), -since, start.pod
    return STEPS.index(start.waiting), since, start.pod


def _start(pod: StartingPod, applied: datetime) -> Start:
    """Return the start of a pod. A step without a time is not listed if the pod has reached a later one."""
    since, last, seconds = applied, 0, []
    for number, (name, time) in enumerate(zip(STEPS, pod.reached, strict=True)):
        if time is not None:
            seconds.append((name, min(max(0, int((time - since).total_seconds())), MAX_INT32)))
            since, last = max(since, time), number
    waiting = STEPS[last + 1] if last + 1 < len(STEPS) else None
    return Start(pod.name, tuple(seconds), waiting, since)


def alive(pods: Iterable[Object]) -> list[StartingPod]:
    """Return the pods that may run, from those that `watch.pods.trim` returns."""
    return [
        _read(pod) for pod in pods if not pod["metadata"].get("deletionTimestamp") and not is_finished(pod)
    ]


def _read(pod: Object) -> StartingPod:
    times = {STEPS[0]: pod["metadata"].get("creationTimestamp"), **mapping(pod.get("reached"))}
    return StartingPod(pod["metadata"]["name"], tuple(instant(times.get(step)) for step in STEPS))


def instant(value: object) -> datetime | None:
    """Return a time of the API server in UTC, None if the value is not one."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
        if time is None or time.tzinfo is None:
            return None
        time = time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time if time >= EPOCH else None
