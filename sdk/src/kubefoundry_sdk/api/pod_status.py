"""What a pod's status says of its containers, in the words of kubelet (`pkg/kubelet/images`, `pkg/kubelet/container`)
and scheduler, Kubernetes 1.26 to 1.36."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

PULL: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
"""Reasons for which a container waits for its image."""

CONFIGURATION: Final = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "PreCreateHookError",
        "PreStartHookError",
        "PostStartHookError",
    }
)
"""Reasons for which a container waits that cannot be created or started as it is."""

CRASH_LOOP: Final = "CrashLoopBackOff"
OUT_OF_MEMORY: Final = "OOMKilled"

LAST_WORDS: Final = {"terminationMessagePolicy": "FallbackToLogsOnError"}
"""For containers that we render: what it logged last before it failed is then in the pod's status."""

LINE: Final = 300
"""Characters of a container's last line that are reported."""


def containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The statuses of all containers, in the order in which a pod starts them."""
    for field in ("initContainerStatuses", "containerStatuses"):
        yield from _items(status.get(field))


def waiting(container: Mapping[str, Any]) -> tuple[str, str] | None:
    """Reason and message of a container that waits; None for one that does not."""
    found = mapping(container.get("state")).get("waiting")
    if not isinstance(found, Mapping):
        return None
    return str(found.get("reason") or ""), str(found.get("message") or "")


def running(container: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Since when the container runs; None for one that does not."""
    found = mapping(container.get("state")).get("running")
    return found if isinstance(found, Mapping) else None


def ended(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """How the container's last run ended; empty where none has."""
    now, before = mapping(container.get("state")), mapping(container.get("lastState"))
    return mapping(now.get("terminated")) or mapping(before.get("terminated"))


def unscheduled(status: Mapping[str, Any]) -> tuple[str, str] | None:
    """Reason and message of a pod that no node takes yet; None where one has, or nobody has looked."""
    for item in _items(status.get("conditions")):
        if (item.get("type"), item.get("status")) == ("PodScheduled", "False"):
            return str(item.get("reason") or ""), str(item.get("message") or "")
    return None


def last_line(text: str) -> str:
    """The last line with something on it, where a program that fails says why; at most LINE characters of it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    return lines[-1] if len(lines[-1]) <= LINE else f"{lines[-1][: LINE - 1]}…"


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def _items(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
