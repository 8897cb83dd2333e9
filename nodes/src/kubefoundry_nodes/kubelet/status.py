"""What a kubelet says about a pod, from what its containers do (kubelet 1.36: getPhase of kubelet_pods.go,
status/generate.go, normalizeStatus of status/status_manager.go). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from kubefoundry_sdk.api.kinds import Object

MESSAGES: Final = 12 * 1024
"""Bytes of all termination messages of a pod: each container gets an equal share, started or not."""

OURS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
"""Conditions that a kubelet writes; others stay as they are."""


@dataclass(slots=True)
class Container:
    """The state of one container. state, last: as the API has them."""

    name: str
    image: str
    state: Object
    last: Object = field(default_factory=dict)
    restarts: int = 0
    started: bool = False
    ready: bool = False
    image_id: str = ""
    id: str = ""

    @property
    def ended(self) -> Object | None:
        """Its `terminated` state, where it is in that."""
        found: Object | None = self.state.get("terminated")
        return found

    def wait(self, reason: str, message: str = "") -> None:
        """It waits. A run that has ended is its last one then."""
        self._leave()
        waiting: Object = {"reason": reason, **({"message": message} if message else {})}
        self.state = {"waiting": waiting}

    def run(self, started: str) -> None:
        self._leave()
        self.state = {"running": {"startedAt": started}}

    def end(self, code: int, reason: str, message: str, began: str, ended: str) -> None:
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
    """This moment as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def restartable(policy: str, code: int, *, init: bool) -> bool:
    """Whether a container that ended with this code is started again."""
    if policy == "Always" and not init:
        return True
    return policy != "Never" and code != 0


def phase(policy: str, init: Sequence[Container], main: Sequence[Container], *, ending: bool) -> str:
    """`Pending`, `Running`, `Succeeded` or `Failed`. ending: nothing is started again, whatever the policy."""
    pending = False
    for one in init:
        ended = one.ended or ("waiting" in one.state and one.last.get("terminated")) or None
        if ended is None:
            pending = True
        elif ended["exitCode"] and not restartable(policy, ended["exitCode"], init=True):
            return "Failed"
    ended_main = [one.ended or one.last.get("terminated") for one in main if "running" not in one.state]
    if pending or None in ended_main:
        return "Pending"
    if len(ended_main) < len(main):
        return "Running"
    codes = [ended["exitCode"] for ended in ended_main if ended]
    if not ending and any(restartable(policy, code, init=False) for code in codes):
        return "Running"
    return "Failed" if any(codes) else "Succeeded"


def container_statuses(containers: Iterable[Container], share: int) -> list[Object]:
    """As the API has them. share: bytes that a termination message may have."""
    return [
        {
            "name": one.name,
            "image": one.image,
            "imageID": one.image_id,
            **({"containerID": one.id} if one.id else {}),
            "state": cut(one.state, share),
            "lastState": cut(one.last, share),
            "restartCount": one.restarts,
            "started": one.started,
            "ready": one.ready,
        }
        for one in containers
    ]


def cut(state: Object, share: int) -> Object:
    """The state with its termination message cut at its end; a letter that is cut in two is left out."""
    ended = state.get("terminated")
    message = ended.get("message", "").encode() if ended else b""
    if ended is None or len(message) <= share:
        return state
    return {"terminated": {**ended, "message": message[:share].decode(errors="ignore")}}


def conditions(
    phase_: str, init: Sequence[Container], main: Sequence[Container], *, sandbox: bool
) -> list[Object]:
    """The kubelet's own. sandbox: whether the pod's network is there."""
    incomplete = [one.name for one in init if not one.ready]
    begun = any("running" in one.state or one.ended or one.last for one in main)
    initialized = begun or not incomplete
    unready = [one.name for one in main if not one.ready]
    made = [_condition("PodReadyToStartContainers", sandbox)]
    if phase_ == "Succeeded":
        made.append(_condition("Initialized", True, "PodCompleted"))
    elif initialized:
        made.append(_condition("Initialized", True))
    else:
        text = f"containers with incomplete status: [{' '.join(incomplete)}]"
        made.append(_condition("Initialized", False, "ContainersNotInitialized", text))
    for name in ("Ready", "ContainersReady"):
        if phase_ in ("Succeeded", "Failed"):
            made.append(_condition(name, False, "PodCompleted" if phase_ == "Succeeded" else "PodFailed"))
        elif unready:
            text = f"containers with unready status: [{' '.join(unready)}]"
            made.append(_condition(name, False, "ContainersNotReady", text))
        else:
            made.append(_condition(name, True))
    return [*made, _condition("PodScheduled", True)]


def _condition(kind: str, holds: bool, reason: str = "", message: str = "") -> Object:
    made: Object = {"type": kind, "status": str(holds)}
    return {**made, **({"reason": reason} if reason else {}), **({"message": message} if message else {})}


def merged_conditions(live: Iterable[Object], ours: Iterable[Object], moment: str) -> list[Object]:
    """Ours beside those of others; a time changes only with the status."""
    before = {one["type"]: one for one in live}
    made = [one for one in before.values() if one["type"] not in OURS]
    for one in ours:
        old = before.get(one["type"])
        since = old.get("lastTransitionTime") if old and old["status"] == one["status"] else None
        made.append({**one, "lastProbeTime": None, "lastTransitionTime": since or moment})
    return made
