"""The status of a pod, derived from its containers as a kubelet does (kubelet 1.36: getPhase of kubelet_pods.go,
status/generate.go, normalizeStatus of status/status_manager.go). All functions are pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from kubefoundry_sdk._api.kinds import Object

MESSAGES: Final = 12 * 1024
"""Bytes of all termination messages of a pod. Each container gets an equal share, started or not."""

OURS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
"""Conditions that a kubelet writes. Others stay unchanged."""


@dataclass(slots=True)
class Container:
    """The state of a container. `state` and `last` have the form of the API.

    A sidecar is an init container that restarts.
    """

    name: str
    image: str
    state: Object
    sidecar: bool = False
    last: Object = field(default_factory=dict)
    restarts: int = 0
    started: bool = False
    ready: bool = False
    image_id: str = ""
    id: str = ""

    @property
    def created(self) -> bool:
        """Whether the container was ever created."""
        return "running" in self.state or bool(self.ended or self.last)

    @property
    def pending(self) -> bool:
        """Whether a sidecar was never created, or runs but has not started. A sidecar that backs off is not."""
        return not self.created or ("running" in self.state and not self.started)

    @property
    def ended(self) -> Object | None:
        """The `terminated` state, None if the container has not ended."""
        terminated: Object | None = self.state.get("terminated")
        return terminated

    def wait(self, reason: str, message: str = "") -> None:
        """Set the state `waiting`. A run that has ended becomes the last state."""
        self._leave()
        waiting: Object = {"reason": reason, **({"message": message} if message else {})}
        self.state = {"waiting": waiting}

    def run(self, started: str) -> None:
        """Set the state `running`."""
        self._leave()
        self.state = {"running": {"startedAt": started}}

    def end(self, code: int, reason: str, message: str, began: str, ended: str) -> None:
        """Set the state `terminated`."""
        detail = {"message": message} if message else {}
        self.state = {
            "terminated": {
                "exitCode": code,
                "reason": reason,
                **detail,
                "startedAt": began,
                "finishedAt": ended,
                "containerID": self.id,
            }
        }
        self.started = False
        self.ready = False

    def _leave(self) -> None:
        if self.ended is not None:
            self.last = self.state


def now() -> str:
    """Return the current time in the format of the API."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def restartable(policy: str, code: int, *, init: bool) -> bool:
    """Check whether a container that ended with this code is restarted."""
    if policy == "Always" and not init:
        return True
    return policy != "Never" and code != 0


def phase(policy: str, init: Sequence[Container], main: Sequence[Container], *, ending: bool) -> str:
    """Return the phase. If the pod is `ending`, no container is restarted, whatever the policy."""
    if _has_failed_init(policy, init):
        return "Failed"
    ends = [_end(container) for container in main if "running" not in container.state]
    if _is_initializing(init, main) or None in ends:
        return "Pending"
    if len(ends) < len(main) or _runs_sidecar(init):
        return "Running"
    return _phase_after(policy, [end["exitCode"] for end in ends if end], ending=ending)


def _phase_after(policy: str, codes: Sequence[int], *, ending: bool) -> str:
    """Return the phase after the end of all main containers with these exit codes."""
    if not ending and any(restartable(policy, code, init=False) for code in codes):
        return "Running"
    return "Failed" if any(codes) else "Succeeded"


def _end(container: Container) -> Object | None:
    """Return the end of a container, or of its last run while it waits for a restart."""
    last = "waiting" in container.state and container.last.get("terminated")
    return container.ended or last or None


def _has_failed_init(policy: str, init: Sequence[Container]) -> bool:
    """Check whether an init container, sidecars apart, failed and is not restarted."""
    codes = [(_end(container) or {}).get("exitCode", 0) for container in init if not container.sidecar]
    return any(code != 0 and not restartable(policy, code, init=True) for code in codes)


def _runs_sidecar(init: Sequence[Container]) -> bool:
    return any(container.sidecar and "running" in container.state for container in init)


def _is_initializing(init: Sequence[Container], main: Sequence[Container]) -> bool:
    """Check whether an init container has not ended, or a sidecar is pending before the main containers exist."""
    created = any(container.created for container in main)
    return any(
        container.pending and not created if container.sidecar else _end(container) is None
        for container in init
    )


def container_statuses(containers: Iterable[Container], share: int) -> list[Object]:
    """Return container statuses in the form of the API. `share`: longest termination message in bytes."""
    return [
        {
            "name": container.name,
            "image": container.image,
            "imageID": container.image_id,
            **({"containerID": container.id} if container.id else {}),
            "state": cut(container.state, share),
            "lastState": cut(container.last, share),
            "restartCount": container.restarts,
            "started": container.started,
            "ready": container.ready,
        }
        for container in containers
    ]


def cut(state: Object, share: int) -> Object:
    """Return the state with a shortened termination message, without an incomplete character at its end."""
    ended = state.get("terminated")
    message = ended.get("message", "").encode() if ended else b""
    if ended is None or len(message) <= share:
        return state
    return {"terminated": {**ended, "message": message[:share].decode(errors="ignore")}}


def conditions(
    phase_: str, init: Sequence[Container], main: Sequence[Container], *, sandbox: bool
) -> list[Object]:
    """Return the kubelet's conditions. `sandbox`: whether the pod has its network."""
    serving = [*(container for container in init if container.sidecar), *main]
    unready = [container.name for container in serving if not container.ready]
    return [
        _condition("PodReadyToStartContainers", sandbox),
        _initialized(phase_, _incomplete(init, main)),
        *(_readiness(name, phase_, unready) for name in ("Ready", "ContainersReady")),
        _condition("PodScheduled", True),
    ]


def _incomplete(init: Sequence[Container], main: Sequence[Container]) -> list[str]:
    """Return the init containers without which the main containers wait; none once a main container was created."""
    if any(container.created for container in main):
        return []
    return [
        container.name
        for container in init
        if not (container.started if container.sidecar else container.ready)
    ]


def _initialized(phase_: str, incomplete: Sequence[str]) -> Object:
    if phase_ == "Succeeded":
        return _condition("Initialized", True, "PodCompleted")
    if not incomplete:
        return _condition("Initialized", True)
    text = f"containers with incomplete status: [{' '.join(incomplete)}]"
    return _condition("Initialized", False, "ContainersNotInitialized", text)


def _readiness(name: str, phase_: str, unready: Sequence[str]) -> Object:
    if phase_ in ("Succeeded", "Failed"):
        return _condition(name, False, "PodCompleted" if phase_ == "Succeeded" else "PodFailed")
    if not unready:
        return _condition(name, True)
    text = f"containers with unready status: [{' '.join(unready)}]"
    return _condition(name, False, "ContainersNotReady", text)


def _condition(kind: str, holds: bool, reason: str = "", message: str = "") -> Object:
    details = {"reason": reason, "message": message}
    return {"type": kind, "status": str(holds), **{key: text for key, text in details.items() if text}}


def merged_conditions(live: Iterable[Object], ours: Iterable[Object], moment: str) -> list[Object]:
    """Merge a kubelet's conditions into the existing ones. A transition time changes only with the status."""
    before = {condition["type"]: condition for condition in live}
    result = [condition for condition in before.values() if condition["type"] not in OURS]
    for condition in ours:
        old = before.get(condition["type"])
        since = old.get("lastTransitionTime") if old and old["status"] == condition["status"] else None
        result.append({**condition, "lastProbeTime": None, "lastTransitionTime": since or moment})
    return result
