"""The line about `status.start` in Events, on the command line and on the web page."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from kubefoundry_sdk._api.untrusted import mapping, mappings

_REACHED: Final = {
    "PodCreated": "created",
    "PodScheduled": "scheduled",
    "ContainersStarted": "containers started",
    "PodReady": "ready",
}
_AWAITED: Final = {
    "PodCreated": "its pod",
    "PodScheduled": "a node",
    "ContainersStarted": "its containers",
    "PodReady": "readiness",
}


def describe_start(start: Any, now: datetime | None = None) -> str:
    """Return `pod m-0: created 1s, scheduled 0s, waits for its containers, 12s so far`; empty without a start.

    Args:
        start: `status.start`, which may have any type.
        now: The current time; None to leave out how long the pod has been waiting.
    """
    clauses = [clause for step in mappings(mapping(start).get("steps")) if (clause := _clause(step, now))]
    pod = mapping(start).get("pod")
    subject = f"pod {pod}: " if pod else ""
    return f"{subject}{', '.join(clauses)}" if clauses else ""


def _clause(step: Any, now: datetime | None) -> str:
    name, seconds = str(step.get("name")), step.get("seconds")
    if isinstance(seconds, int) and name in _REACHED:
        return f"{_REACHED[name]} {seconds}s"
    if "since" not in step or name not in _AWAITED:
        return ""
    waited = _seconds_since(step["since"], now)
    return f"waits for {_AWAITED[name]}{'' if waited is None else f', {waited}s so far'}"


def _seconds_since(moment: Any, now: datetime | None) -> int | None:
    try:
        return None if now is None else max(0, int((now - datetime.fromisoformat(moment)).total_seconds()))
    except (TypeError, ValueError):
        return None
