"""Why an upstream object does not serve, as its pods show it: a pure function from pods to one cause.

Contract §3, pod causes: image pull errors, crash loops, running out of memory and invalid container configuration
make a deployment Failed if nothing serves. A pod that cannot be scheduled is only reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from kubefoundry_sdk.api import pod_status
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.parts import mapping
from kubefoundry_sdk.api.pod_status import last_line
from kubefoundry_sdk.provider.contract import Observation

PATIENCE: Final = timedelta(seconds=60)
"""A container that crashed has recovered once it has run this many seconds longer than twice its last run."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What is wrong with one pod: what happened to which container, why, and what to do.

    failed: whether a deployment that does not serve is Failed because of it.
    until: when it may be over although no event reports it.
    rank: the lower, the closer to the root cause.
    """

    message: str
    failed: bool
    rank: int
    until: datetime | None = None


def cause(pods: Iterable[Object], now: datetime) -> Cause | None:
    """The cause to report, or None if the pods show none. Does not depend on the order of the pods.

    pods: as `watch.pods.trim` returns them: without containers that are ready.
    """
    found = [
        (item.rank, pod["metadata"]["name"], number, item)
        for pod in pods
        if not pod["metadata"].get("deletionTimestamp")
        for number, item in enumerate(_causes(pod, now))
    ]
    return min(found, key=lambda entry: entry[:3])[3] if found else None


def explain(seen: Observation, why: Cause, title: str) -> Observation:
    """The observation with the cause added to its message, in front if it does not serve. title: what messages call
    the upstream."""
    if seen.reason == "ScaledToZero":
        return seen
    if seen.phase == "Running" or (seen.phase == "Failed" and not why.failed):
        return replace(seen, message=f"{seen.message}; {why.message}")
    message = f"{why.message} ({title}: {seen.message})"
    if why.failed:
        return replace(seen, phase="Failed", reason="Failed", message=message)
    return replace(seen, phase="Deploying", message=message)


def _causes(pod: Object, now: datetime) -> Iterator[Cause]:
    status = mapping(pod.get("status"))
    reason, why = pod_status.unscheduled(status) or ("", "")
    if reason == "Unschedulable":
        yield Cause(
            f"pod {pod['metadata']['name']} cannot be scheduled: {why or 'no node fits'}; "
            "free or add nodes with the resources that it requests",
            failed=False,
            rank=5,
        )
    for container in pod_status.containers(status):
        if (found := _container(pod, container, now)) is not None:
            yield found


def _container(pod: Object, container: Mapping[str, Any], now: datetime) -> Cause | None:
    reason, said = pod_status.waiting(container) or ("", "")
    where = f"container {container.get('name')} of pod {pod['metadata']['name']}"
    if reason in pod_status.PULL:
        return Cause(
            f"image {container.get('image')} of {where} cannot be pulled{_pull_error(said)}; "
            "correct the image, or give the nodes access to its registry",
            failed=True,
            rank=2,
        )
    if reason in pod_status.CONFIGURATION:
        return Cause(
            f"{where} cannot be started: {last_line(said) or reason}; create what is missing, or correct the spec",
            failed=True,
            rank=1,
        )
    end = pod_status.ended(container)
    return _crash(pod, container, where, end, now) if end.get("exitCode") else None


def _crash(
    pod: Object, container: Mapping[str, Any], where: str, end: Mapping[str, Any], now: datetime
) -> Cause | None:
    """The cause for a container that crashed and is not ready, unless it has recovered by running longer than
    before."""
    running = pod_status.running(container)
    until = None if running is None else _recovered(running, end)
    if until is not None and until <= now:
        return None
    memory = end.get("reason") == pod_status.OUT_OF_MEMORY
    restarts = int(container.get("restartCount") or 0)
    # Kubernetes restarts it immediately the first time: not a loop yet.
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
    said = last_line(str(end.get("message") or ""))
    exit_ = f"exit code {end['exitCode']}"
    return Cause(
        f"{where} {'keeps crashing' if loop else 'crashed'}, {_times(restarts)}: "
        f"{f'{said} ({exit_})' if said else exit_}; see kubectl logs -n {pod['metadata']['namespace']} "
        f"{pod['metadata']['name']} -c {container.get('name')} --previous",
        failed=loop,
        rank=4,
        until=until,
    )


def _recovered(running: Mapping[str, Any], end: Mapping[str, Any]) -> datetime | None:
    """When a running container will have outlived its previous run."""
    started, born, died = (
        _time(value) for value in (running.get("startedAt"), end.get("startedAt"), end.get("finishedAt"))
    )
    if started is None or born is None or died is None:
        return None
    return started + 2 * max(died - born, timedelta()) + PATIENCE


def _pull_error(said: str) -> str:
    """What the registry answered. While the container waits, kubelet repeats it only from 1.31 on, after
    `ErrImagePull: `."""
    _, found, repeated = said.partition("ErrImagePull: ")
    if found:
        said = repeated
    elif said.startswith("Back-off pulling image"):
        return ""
    return f": {last_line(said)}" if last_line(said) else ""


def _times(restarts: int) -> str:
    return {0: "not restarted yet", 1: "restarted once"}.get(restarts, f"restarted {restarts} times")


def _time(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
