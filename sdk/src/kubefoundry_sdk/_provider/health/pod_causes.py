"""Finds the cause why an upstream object does not serve: a pure function from its pods to one cause.

Contract §3, pod causes: image pull errors, crash loops, running out of memory and invalid container configuration
make a deployment Failed if nothing serves. A pod that cannot be scheduled, or whose container is not created, is only
reported. A pod that has finished is reported only while nothing serves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from kubefoundry_sdk._api import pod_status
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.pod_status import last_line, root_cause
from kubefoundry_sdk._api.untrusted import mapping, mappings
from kubefoundry_sdk._provider.contract import QUEUE_LABEL, Observation

PATIENCE: Final = timedelta(seconds=60)
"""A crashed container has recovered once it has run for twice the duration of its last run plus this time."""


CREATION: Final = 60.0
"""Seconds after which a container that is still being created is reported."""

UNSCHEDULED: Final = 5
"""The rank of a pod that is not scheduled."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of one pod's problem.

    Attributes:
        message: What happened to which container, why, and what to do.
        failed: Whether a deployment that does not serve is Failed because of it.
        rank: The distance from the root cause; the lowest rank is reported.
        until: The time at which the problem may be over without an event.
        past: Whether the pod has finished, so that the cause is not reported for a model that serves.
    """

    message: str
    failed: bool
    rank: int
    until: datetime | None = None
    past: bool = False


class Creations:
    """The times at which this process first saw that a container of one model is being created."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, ...], float] = {}

    def overdue(self, pods: Iterable[Object], now: float) -> tuple[frozenset[str], float | None]:
        """Return the pods with a container that takes too long to create, and the seconds until there may be more.

        `now` is in monotonic seconds.
        """
        self._since = {key: self._since.get(key, now) for key in map(_creation, pods) if key}
        left = {key[0]: CREATION - (now - since) for key, since in self._since.items()}
        overdue = frozenset(name for name, seconds in left.items() if seconds <= 0)
        return overdue, min((seconds for seconds in left.values() if seconds > 0), default=None)


def _creation(pod: Object) -> tuple[str, ...]:
    """Return the pod and its container that is being created; empty if there is none."""
    meta, container = pod["metadata"], pod_status.creating(mapping(pod.get("status")))
    if container is None or is_finished(pod):
        return ()
    return meta["name"], str(meta.get("creationTimestamp")), str(container.get("name"))


def is_finished(pod: Object) -> bool:
    """Check whether the containers of the pod will never run again."""
    return mapping(pod.get("status")).get("phase") in pod_status.FINISHED


def scheduling_gates(pod: Object) -> list[str]:
    """Return the names of the scheduling gates of a pod, as `watch.pods.trim` returns it."""
    return [str(gate.get("name")) for gate in mappings(mapping(pod.get("spec")).get("schedulingGates"))]


def cause(pods: Iterable[Object], now: datetime, overdue: Collection[str] = ()) -> Cause | None:
    """Return the cause to report, or None if the pods show none. Does not depend on the order of the pods.

    The pods are those that `watch.pods.trim` returns, without containers that are ready. `overdue` names the pods in
    which a container has been created for too long (`Creations`).
    """
    present = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
    causes = [
        (item.rank, pod["metadata"]["name"], number, item)
        for pod in present
        if not is_finished(pod)
        for number, item in enumerate(_causes(pod, now, pod["metadata"]["name"] in overdue))
    ]
    return min(causes, key=lambda entry: entry[:3])[3] if causes else _finished(present)


def explain(observation: Observation, why: Cause, title: str) -> Observation:
    """Return the observation with the cause in its message. `title` names the upstream.

    The cause is in front of the upstream's message if the model does not serve, and behind it otherwise.
    """
    if observation.reason == "ScaledToZero" or (why.past and observation.phase == "Running"):
        return observation
    if observation.phase == "Running" or (observation.phase == "Failed" and not why.failed):
        return replace(observation, message=f"{observation.message}; {why.message}")
    message = f"{why.message} ({title}: {observation.message})"
    if why.failed:
        return replace(observation, phase="Failed", reason="Failed", message=message)
    return replace(observation, phase="Deploying", message=message)


def _causes(pod: Object, now: datetime, overdue: bool) -> Iterator[Cause]:
    status = mapping(pod.get("status"))
    if (cause := _not_scheduled(pod, status)) is not None:
        yield cause
    for container in pod_status.containers(status):
        if (cause := _container(pod, container, now)) is not None:
            yield cause
    starting = pod_status.creating(status)
    if overdue and starting is not None:
        yield Cause(
            f"container {starting.get('name')} of pod {pod['metadata']['name']} has been waiting to be created for "
            "more than a minute: its image is still being pulled, or a volume cannot be attached or mounted; "
            f"see the Events in {_describe(pod)}",
            failed=False,
            rank=6,
        )


def _not_scheduled(pod: Object, status: Mapping[str, Any]) -> Cause | None:
    reason, why = pod_status.unscheduled(status) or ("", "")
    name = pod["metadata"]["name"]
    queue = mapping(pod["metadata"].get("labels")).get(QUEUE_LABEL)
    if reason == pod_status.GATED:
        gates = scheduling_gates(pod)
        if pod_status.ADMISSION_GATE in gates and queue:
            return Cause(
                f"pod {name} waits for quota in queue {queue}: Kueue has not admitted it",
                failed=False,
                rank=UNSCHEDULED,
            )
        return Cause(
            f"pod {name} is not scheduled because of scheduling gate {', '.join(gates) or '(unknown)'}: it starts "
            "once the gate's controller, such as a job queue, has removed the gate",
            failed=False,
            rank=UNSCHEDULED,
        )
    if reason != pod_status.UNSCHEDULABLE:
        return None
    claims = "check the PersistentVolumeClaims that it mounts, and " if "volume" in why.lower() else ""
    return Cause(
        f"pod {name} cannot be scheduled: {why or 'no node fits'}; "
        f"{claims}free or add nodes with the resources that it requests",
        failed=False,
        rank=UNSCHEDULED,
    )


def _finished(pods: Iterable[Object]) -> Cause | None:
    """Return the cause for failed pods: evicted, refused by the kubelet, or stopped with their node.

    The message names the first pod that failed for the newest reason, and the numbers of other pods that failed for
    this reason and for other reasons. The numbers are rounded, because a kubelet may refuse thousands of pods, and
    each changed message is a write.
    """
    failed = [pod for pod in pods if mapping(pod.get("status")).get("phase") == "Failed"]
    failed.sort(key=lambda pod: (str(pod["metadata"].get("creationTimestamp")), pod["metadata"]["name"]))
    if not failed:
        return None
    newest = _failure_key(failed[-1]["status"])
    same_reason = [pod for pod in failed if _failure_key(pod["status"]) == newest]
    first = same_reason[0]
    others = f", and so have {_rounded(len(same_reason) - 1)}" if len(same_reason) > 1 else ""
    if len(failed) > len(same_reason):
        others += f"; {_rounded(len(failed) - len(same_reason))} failed for other reasons"
    return Cause(
        f"pod {first['metadata']['name']} has failed: {_failure_text(first['status'])}{others}; "
        f"see {_describe(first)}",
        failed=False,
        rank=7,
        past=True,
    )


def _failure_key(status: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the key by which failed pods are grouped: the pod's reason, or else container and exit code."""
    if status.get("reason"):
        return str(status["reason"]), "", ""
    for container in pod_status.containers(status):
        if code := pod_status.ended(container).get("exitCode"):
            return "", str(container.get("name")), str(code)
    return "", "", ""


def _failure_text(status: Mapping[str, Any]) -> str:
    """Return the pod's reason and message, or else the message and exit code of its container."""
    if status.get("reason"):
        return ": ".join(str(part) for part in (status["reason"], status.get("message")) if part)
    for container in pod_status.containers(status):
        if (end := pod_status.ended(container)).get("exitCode"):
            message = root_cause(str(end.get("message") or ""))
            exit_code = f"exit code {end['exitCode']}"
            return f"container {container.get('name')} ended: {f'{message} ({exit_code})' if message else exit_code}"
    return "no reason given"


def _rounded(count: int) -> str:
    """Return `1 other pod`, `7 other pods`, and above 10 only `more than 10`, `100`, `1000`."""
    if count > 10:
        return f"more than {10 ** (len(str(count - 1)) - 1)} other pods"
    return "1 other pod" if count == 1 else f"{count} other pods"


def _describe(pod: Object) -> str:
    return f"kubectl describe pod -n {pod['metadata']['namespace']} {pod['metadata']['name']}"


def _container(pod: Object, container: Mapping[str, Any], now: datetime) -> Cause | None:
    reason, message = pod_status.waiting(container) or ("", "")
    where = f"container {container.get('name')} of pod {pod['metadata']['name']}"
    if reason in pod_status.PULL:
        return Cause(
            f"image {container.get('image')} of {where} cannot be pulled{_pull_error(message)}; "
            "correct the image, or give the nodes access to its registry",
            failed=True,
            rank=2,
        )
    if reason in pod_status.CONFIGURATION:
        return Cause(
            f"{where} cannot be started: {last_line(message) or reason}; create what is missing, or correct the spec",
            failed=True,
            rank=1,
        )
    end = pod_status.ended(container)
    return _crash(pod, container, where, end, now) if end.get("exitCode") else None


def _crash(
    pod: Object, container: Mapping[str, Any], where: str, end: Mapping[str, Any], now: datetime
) -> Cause | None:
    """Return the cause for a container that crashed and is not ready.

    A container that has recovered (`_recovered`) has no cause.
    """
    running = pod_status.running(container)
    until = None if running is None else _recovered(running, end)
    if until is not None and until <= now:
        return None
    memory = end.get("reason") == pod_status.OUT_OF_MEMORY
    restarts = int(container.get("restartCount") or 0)
    # The first crash is not a loop: Kubernetes restarts the container immediately.
    looping = (pod_status.waiting(container) or ("", ""))[0] == pod_status.CRASH_LOOP
    loop = looping or restarts + (running is None) > 1
    if memory:
        return Cause(
            f"{where} was killed because it ran out of memory, {_times(restarts)}; raise its memory, "
            "or reduce what the model needs",
            failed=True,
            rank=3,
            until=until,
        )
    message = root_cause(str(end.get("message") or ""))
    exit_code = f"exit code {end['exitCode']}"
    return Cause(
        f"{where} {'keeps crashing' if loop else 'crashed'}, {_times(restarts)}: "
        f"{f'{message} ({exit_code})' if message else exit_code}; see kubectl logs -n {pod['metadata']['namespace']} "
        f"{pod['metadata']['name']} -c {container.get('name')} --previous",
        failed=loop,
        rank=4,
        until=until,
    )


def _recovered(running: Mapping[str, Any], end: Mapping[str, Any]) -> datetime | None:
    """Return the time at which a running container counts as recovered from its last crash (`PATIENCE`)."""
    started, last_start, last_end = (
        _time(value) for value in (running.get("startedAt"), end.get("startedAt"), end.get("finishedAt"))
    )
    if started is None or last_start is None or last_end is None:
        return None
    return started + 2 * max(last_end - last_start, timedelta()) + PATIENCE


def _pull_error(message: str) -> str:
    """Return the registry's response, as text that follows the image's name.

    While a container waits for the next pull, the kubelet repeats the response after `ErrImagePull: `, from
    Kubernetes 1.31 on.
    """
    _, is_repeated, repeated = message.partition("ErrImagePull: ")
    if is_repeated:
        message = repeated
    elif message.startswith("Back-off pulling image"):
        return ""
    return f": {last_line(message)}" if last_line(message) else ""


def _times(restarts: int) -> str:
    return {0: "not restarted yet", 1: "restarted once"}.get(restarts, f"restarted {restarts} times")


def _time(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
