"""Reads the state of containers from a pod's status.

The reasons are those of the kubelet (`pkg/kubelet/images`, `pkg/kubelet/container`) and the scheduler, Kubernetes
1.26 to 1.36. If there is a reason, it decides. A program's last words are free text, and the line that best names the
cause is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubefoundry_sdk._api.untrusted import mapping, mappings

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

CREATING: Final = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons of a container that waits for volumes, for its image, or for an init container."""

FINISHED: Final = frozenset({"Failed", "Succeeded"})
"""Phases of a pod whose containers never run again (an evicted pod, for example)."""

UNSCHEDULABLE: Final = "Unschedulable"
GATED: Final = "SchedulingGated"
ADMISSION_GATE: Final = "kueue.x-k8s.io/admission"
"""The scheduling gate of a pod that waits for quota in a queue of Kueue."""
CRASH_LOOP: Final = "CrashLoopBackOff"
OUT_OF_MEMORY: Final = "OOMKilled"

LAST_WORDS: Final = {"terminationMessagePolicy": "FallbackToLogsOnError"}
"""For containers that we render: puts the last log lines before a failure into the pod's status."""

NO_SERVICE_LINKS: Final = {"enableServiceLinks": False}
"""For pods that we render: otherwise a Service called `vllm` in the namespace gives vLLM a variable
VLLM_PORT=tcp://…, and vLLM exits."""

LINE: Final = 300
"""Characters of a container's last line that are reported."""


def containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the statuses of all containers, in the order in which a pod starts them."""
    for field in ("initContainerStatuses", "containerStatuses"):
        yield from mappings(status.get(field))


def waiting(container: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the reason and the message of a waiting container, or None if it is not waiting."""
    state = mapping(container.get("state")).get("waiting")
    if not isinstance(state, Mapping):
        return None
    return str(state.get("reason") or ""), str(state.get("message") or "")


def running(container: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the state of a running container, with its `startedAt`, or None if it is not running."""
    state = mapping(container.get("state")).get("running")
    return state if isinstance(state, Mapping) else None


def ended(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the state in which the container's last run ended; empty if no run has ended."""
    now, before = mapping(container.get("state")), mapping(container.get("lastState"))
    return mapping(now.get("terminated")) or mapping(before.get("terminated"))


def unscheduled(status: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the reason and the message of a pod that no node accepts yet.

    Return None if the pod is scheduled, or the scheduler has not looked at it.
    """
    for item in mappings(status.get("conditions")):
        if (item.get("type"), item.get("status")) == ("PodScheduled", "False"):
            return str(item.get("reason") or ""), str(item.get("message") or "")
    return None


def reached(status: Mapping[str, Any]) -> dict[str, str]:
    """Return the times at which the pod reached the steps of its start, as the status has them.

    A container that was restarted counts from its last start. An earlier one may not be in the status.
    """
    times = {
        item["type"]: item.get("lastTransitionTime")
        for item in mappings(status.get("conditions"))
        if item.get("type") in ("PodScheduled", "Ready") and item.get("status") == "True"
    }
    containers = mappings(status.get("containerStatuses"))
    runs = [mapping(running(item)).get("startedAt") for item in containers]
    started = [time for time in runs if isinstance(time, str)]
    steps = {
        "PodScheduled": times.get("PodScheduled"),
        "ContainersStarted": max(started) if started and len(started) == len(containers) else None,
        "PodReady": times.get("Ready"),
    }
    return {step: time for step, time in steps.items() if isinstance(time, str)}


def creating(status: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the container that the kubelet is creating; None if there is none, or an init container runs."""
    for container in mappings(status.get("initContainerStatuses")):
        if (waiting(container) or ("",))[0] in CREATING:
            return container
        if running(container) is not None:
            return None
    starting = (
        container
        for container in mappings(status.get("containerStatuses"))
        if (waiting(container) or ("",))[0] in CREATING
    )
    return next(starting, None)


def one_line(text: str) -> str:
    """Return all lines as one, at most LINE characters: Kubernetes' messages begin with the cause."""
    return _shortened(" ".join(text.split()))


def last_line(text: str) -> str:
    """Return the last non-empty line, at most LINE characters of it: a failing program names the cause there."""
    return _shortened(next(iter(_lines_from_the_end(text)), ""))


_PREFIX: Final = re.compile(
    r"(\([^()]{1,80}\) )?((ERROR|CRITICAL|FATAL|WARNING|INFO|DEBUG) [-\d:T., ]{1,40}(\[[^\]]{0,80}\] ?)?)?"
)
"""vLLM's prefixes: `(EngineCore_DP0 pid=88) ERROR 11-25 12:00:00 [core.py:708] `."""

_EXCEPTION: Final = re.compile(
    r"([\w.]{0,100}(Error|Exception|Interrupt|Exit|Failure)(:|$)|(Value error|Assertion failed), )"
)
"""The line with which a Python traceback ends, and the detail of a pydantic error."""

_ERROR: Final = re.compile(
    r"\b(error|exception|fatal|panic(ked)?|failed|failure|cannot|unable)\b", re.IGNORECASE
)

_SOURCE: Final = re.compile(r"(raise |File \"|Traceback |During handling |The above exception )")
"""Lines of a traceback that name an exception and are not its message."""

_FOLLOW_UP: Final = re.compile(
    r"root cause|(see|check) .{0,40}\babove\b|Engine core initialization failed|Engine process failed"
    r"|EngineDeadError|EngineCore failed to start|background process|Failed core proc|worker.{0,20} died"
    r"|scheduler.{0,40} (died|terminated)"
    r"|ChildFailedError|ChildProcessError|BrokenPipeError|ConnectionResetError|EOFError|CancelledError|SystemExit"
    r"|KeyboardInterrupt|Executor worker returned error|MPI_ABORT|mpirun|validation errors? for"
    r"|: failed to load model(?! from)|exiting due to model loading error"
    r"|resource_tracker|leaked|[A-Z]\w{0,40}Warning\b|destroy_process_group"
)
"""Errors that only report that another process or step has failed (vLLM, SGLang, TensorRT-LLM, llama.cpp, torchrun),
and noise of an exit."""


def root_cause(text: str) -> str:
    """Return the line that names the cause of a failure; at most LINE characters of it.

    This is the last line that names an exception, or else the last one that names an error. Known follow-up errors
    come after both, and the last line is the fallback.
    """
    candidates = [(_closeness(line), line) for line in _lines_from_the_end(text)]
    return _shortened(max(candidates, key=lambda item: item[0], default=(0, ""))[1])


def _closeness(line: str) -> int:
    """Return how close to the cause of a failure the line is; a higher number is closer."""
    words = _PREFIX.sub("", line, count=1).strip()
    if _SOURCE.match(words):
        return 0
    if _EXCEPTION.match(words):
        return 1 if _FOLLOW_UP.search(words) else 3
    return 2 if _ERROR.search(words) and not _FOLLOW_UP.search(words) else 0


def _lines_from_the_end(text: str) -> list[str]:
    return [line.strip() for line in reversed(text.splitlines()) if line.strip()]


def _shortened(line: str) -> str:
    return line if len(line) <= LINE else f"{line[: LINE - 1]}…"
