"""From what a turn found out to the status fields that are ours, and to Events (contract §3, contract §10). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from api_server import Object
from widget import API_VERSION, Seen

REFUSED: Final = ("Unsupported",)
"""Reasons of `ProviderCompatible`; all others are `ResourceCreated`'s."""

PHASES: Final = {
    "Unsupported": "Failed",
    "ApplyRejected": "Failed",
    "NameConflict": "Failed",
    "Terminating": "Terminating",
}
"""By reason, while the model does not serve; Pending for all others (contract §10)."""

PASSING: Final = ("DryRun", "Recreating", "WaitingForCleanup", "Terminating")
"""Nothing is wrong: the Event is a Normal one."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the writing ended. again: seconds until it is tried again, where no event will say so."""

    reason: str
    message: str
    again: float | None = None


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(type_: str, status: bool, reason: str, message: str, generation: int) -> Object:
    wanted = "True" if status else "False"
    return {
        "type": type_,
        "status": wanted,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
    }


def decisions(generation: int, stop: Stop | None, ignored: str) -> list[Object]:
    """The conditions of the provider that is chosen. ignored: overrides that nobody reads."""
    found = [condition("OverridesValid", False, "UnknownKeys", ignored, generation)] if ignored else []
    if stop and stop.reason in REFUSED:
        return [condition("ProviderCompatible", False, stop.reason, stop.message, generation), *found]
    fits = condition("ProviderCompatible", True, "CompatibilityVerified", "Widgets can serve it", generation)
    said = (stop.reason, stop.message) if stop else ("ResourceCreated", "Widget is applied")
    return [fits, condition("ResourceCreated", stop is None, *said, generation), *found]


def serving(name: str, generation: int, stop: Stop | None, seen: Seen | None) -> Object:
    """The fields of the provider that serves, `Ready` among them. generation: the one that it serves."""
    if seen and seen.phase == "Running":
        kept = f"{stop.message}; the last good version keeps serving" if stop else seen.message
        phase, reason, message = "Running", "DeploymentReady", kept
    elif seen and (stop is None or stop.reason == "ApplyFailed"):
        phase, reason = seen.phase, seen.reason
        message = f"{seen.message}; {stop.message}" if stop else seen.message
    else:
        phase = PHASES.get(stop.reason, "Pending") if stop else "Pending"
        reason = "Failed" if phase == "Failed" else "Progressing"
        message = stop.message if stop else "Waiting for the Widget"
    status: Object = {
        "phase": phase,
        "message": message,
        "observedGeneration": generation,
        "conditions": [condition("Ready", phase == "Running", reason, message, generation)],
    }
    if seen:
        status["provider"] = {
            "resourceName": name,
            "resourceKind": "Widget",
            "resourceAPIVersion": API_VERSION,
        }
        status["replicas"] = {"desired": seen.desired, "ready": seen.ready, "available": seen.ready}
    if phase == "Running":
        status["endpoint"] = {"service": name, "port": 8000}
    return status


def owned(deployment: Object, manager: str) -> Object:
    """The status fields that we have applied, as they are now."""
    status, found = deployment.get("status") or {}, Object()
    for entry in deployment["metadata"].get("managedFields") or ():
        if entry.get("manager") != manager or entry.get("subresource") != "status":
            continue
        fields = (entry.get("fieldsV1") or {}).get("f:status") or {}
        found = {name: value for name, value in status.items() if f"f:{name}" in fields}
        if provider := fields.get("f:provider"):
            found["provider"] = {
                name: value for name, value in status.get("provider", {}).items() if f"f:{name}" in provider
            }
        if types := fields.get("f:conditions"):
            found["conditions"] = [
                item for item in status.get("conditions", ()) if f'k:{{"type":"{item["type"]}"}}' in types
            ]
    return found


def states(deployment: Object, manager: str, types: set[str]) -> bool:
    """Check whether the manager has applied these conditions whole."""
    said = {"f:status", "f:reason", "f:message", "f:observedGeneration"}
    for entry in deployment["metadata"].get("managedFields") or ():
        if entry.get("manager") == manager and entry.get("subresource") == "status":
            fields = ((entry.get("fieldsV1") or {}).get("f:status") or {}).get("f:conditions") or {}
            return all(fields.get(f'k:{{"type":"{type_}"}}', {}).keys() >= said for type_ in types)
    return False


def stamped(conditions: list[Object], before: list[Object]) -> list[Object]:
    """With their times: another one only where `status` is another."""
    known = {item["type"]: item for item in before}

    def since(item: Object) -> object:
        old = known.get(item["type"], {})
        return old.get("lastTransitionTime", now()) if old.get("status") == item["status"] else now()

    return [{**item, "lastTransitionTime": since(item)} for item in conditions]


def same(one: Object, other: Object) -> bool:
    """Whether nothing differs but the order of conditions."""

    def plain(status: Object) -> Object:
        return {**status, "conditions": {item["type"]: item for item in status.get("conditions", ())}}

    return plain(one) == plain(other)


def transitions(before: Object, after: Object) -> list[tuple[str, str, str]]:
    """Events: type, reason and note, one for each transition."""
    old = {item["type"]: (item["status"], item["reason"]) for item in before.get("conditions", ())}
    events = []
    for item in after.get("conditions", ()):
        good = item["status"] == "True"
        if old.get(item["type"]) == (item["status"], item["reason"]) or (
            item["type"] == "Ready" and not good
        ):
            continue
        if item["type"] != "ProviderCompatible" or not good:
            kind = "Normal" if good or item["reason"] in PASSING else "Warning"
            events.append((kind, item["reason"], item["message"]))
    if after.get("phase") == "Failed" != before.get("phase") and not any(
        kind == "Warning" for kind, *_ in events
    ):
        events.append(("Warning", "ProviderError", f"Provider resource in error state: {after['message']}"))
    return events
