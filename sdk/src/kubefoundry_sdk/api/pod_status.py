"""What a pod's status says about its containers, in the words of kubelet (`pkg/kubelet/images`,
`pkg/kubelet/container`) and scheduler, Kubernetes 1.26 to 1.36."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubefoundry_sdk.api.parts import mapping, mappings

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
"""Reasons of a container that waits for its image."""

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
"""Reasons of a waiting container that cannot be created or started in its current configuration."""

CRASH_LOOP: Final = "CrashLoopBackOff"
OUT_OF_MEMORY: Final = "OOMKilled"

LAST_WORDS: Final = {"terminationMessagePolicy": "FallbackToLogsOnError"}
"""For containers that we render: puts the last log lines before a failure into the pod's status."""

LINE: Final = 300
"""Characters of a container's last line that are reported."""


def containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The statuses of all containers, in the order in which a pod starts them."""
    for field in ("initContainerStatuses", "containerStatuses"):
        yield from mappings(status.get(field))


def waiting(container: Mapping[str, Any]) -> tuple[str, str] | None:
    """Reason and message of a waiting container; None if it is not waiting."""
    found = mapping(container.get("state")).get("waiting")
    if not isinstance(found, Mapping):
        return None
    return str(found.get("reason") or ""), str(found.get("message") or "")


def running(container: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Since when the container has been running; None if it is not."""
    found = mapping(container.get("state")).get("running")
    return found if isinstance(found, Mapping) else None


def ended(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """How the container's last run ended; empty if none has."""
    now, before = mapping(container.get("state")), mapping(container.get("lastState"))
    return mapping(now.get("terminated")) or mapping(before.get("terminated"))


def unscheduled(status: Mapping[str, Any]) -> tuple[str, str] | None:
    """Reason and message of a pod that no node accepts yet; None if it is scheduled, or the scheduler has not
    looked."""
    for item in mappings(status.get("conditions")):
        if (item.get("type"), item.get("status")) == ("PodScheduled", "False"):
            return str(item.get("reason") or ""), str(item.get("message") or "")
    return None


def last_line(text: str) -> str:
    """The last non-empty line, where a failing program says why; at most LINE characters of it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    return lines[-1] if len(lines[-1]) <= LINE else f"{lines[-1][: LINE - 1]}…"
