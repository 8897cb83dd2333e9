"""Status fields and Events for the result of a turn (contract §3, contract §10). All functions are pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from api_server import Object
from widget import API_VERSION, Seen

REFUSED: Final = ("Unsupported",)
"""Reasons of `ProviderCompatible`. All others are reasons of `ResourceCreated`."""

PHASES: Final = {
    "Unsupported": "Failed",
    "ApplyRejected": "Failed",
    "NameConflict": "Failed",
    "Terminating": "Terminating",
}
"""Phases by reason while the model does not serve; Pending for all others (contract §10)."""

PASSING: Final = ("DryRun", "Recreating", "WaitingForCleanup", "Terminating")
"""Reasons of Normal Events, because they are not errors."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a turn wrote no Widget. `again`: seconds until a retry if no event will cause one."""

    reason: str
    message: str
    again: float | None = None


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(type_: str, status: bool, reason: str, message: str, generation: int) -> Object:
    value = "True" if status else "False"
    return {
        "type": type_,
        "status": value,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
    }


def decisions(generation: int, stop: Stop | None, ignored: str) -> list[Object]:
    """Return the conditions of the chosen provider. `ignored`: the message about unknown overrides."""
    warnings = [condition("OverridesValid", False, "UnknownKeys", ignored, generation)] if ignored else []
    if stop and stop.reason in REFUSED:
        return [condition("ProviderCompatible", False, stop.reason, stop.message, generation), *warnings]
    fits = condition("ProviderCompatible", True, "CompatibilityVerified", "Widgets can serve it", generation)
    reason, message = (stop.reason, stop.message) if stop else ("ResourceCreated", "Widget is applied")
    return [fits, condition("ResourceCreated", stop is None, reason, message, generation), *warnings]


def kept(generation: int, newest: int) -> str:
    """Return the clause about the version that serves, which claims no more than is known."""
    if not generation:
        return "the model serves, but it is not known which version"
    return "the last good version keeps serving" if generation < newest else "the model keeps serving"


def serving(name: str, generation: int, newest: int, stop: Stop | None, observation: Seen | None) -> Object:
    """Return the fields of the serving provider, with `Ready`. `generation`: the one that it serves."""
    if observation and observation.phase == "Running":
        running_message = f"{stop.message}; {kept(generation, newest)}" if stop else observation.message
        phase, reason, message = "Running", "DeploymentReady", running_message
    elif observation and (stop is None or stop.reason == "ApplyFailed"):
        phase, reason = observation.phase, observation.reason
        message = f"{observation.message}; {stop.message}" if stop else observation.message
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
    if observation:
        status["provider"] = {
            "resourceName": name,
            "resourceKind": "Widget",
            "resourceAPIVersion": API_VERSION,
        }
        status["replicas"] = {
            "desired": observation.desired,
            "ready": observation.ready,
            "available": observation.ready,
        }
    if phase == "Running":
        status["endpoint"] = {"service": name, "port": 8000}
    return status


def owned(deployment: Object, manager: str) -> Object:
    """Return the current values of the status fields that a manager owns."""
    status, values = deployment.get("status") or {}, Object()
    for entry in deployment["metadata"].get("managedFields") or ():
        if entry.get("manager") != manager or entry.get("subresource") != "status":
            continue
        fields = (entry.get("fieldsV1") or {}).get("f:status") or {}
        values = {name: value for name, value in status.items() if f"f:{name}" in fields}
        if provider := fields.get("f:provider"):
            values["provider"] = {
                name: value for name, value in status.get("provider", {}).items() if f"f:{name}" in provider
            }
        if types := fields.get("f:conditions"):
            values["conditions"] = [
                item for item in status.get("conditions", ()) if f'k:{{"type":"{item["type"]}"}}' in types
            ]
    return values


def states(deployment: Object, manager: str, types: set[str]) -> bool:
    """Check whether the manager has applied these conditions whole."""
    whole = {"f:status", "f:reason", "f:message", "f:observedGeneration"}
    for entry in deployment["metadata"].get("managedFields") or ():
        if entry.get("manager") == manager and entry.get("subresource") == "status":
            fields = ((entry.get("fieldsV1") or {}).get("f:status") or {}).get("f:conditions") or {}
            return all(fields.get(f'k:{{"type":"{type_}"}}', {}).keys() >= whole for type_ in types)
    return False


def stamped(conditions: list[Object], before: list[Object]) -> list[Object]:
    """Add transition times, which change only with `status`."""
    old_conditions = {item["type"]: item for item in before}

    def since(item: Object) -> object:
        old = old_conditions.get(item["type"], {})
        return old.get("lastTransitionTime", now()) if old.get("status") == item["status"] else now()

    return [{**item, "lastTransitionTime": since(item)} for item in conditions]


def same(left: Object, right: Object) -> bool:
    """Check whether two statuses differ only in the order of conditions."""

    def plain(status: Object) -> Object:
        return {**status, "conditions": {item["type"]: item for item in status.get("conditions", ())}}

    return plain(left) == plain(right)


def transitions(before: Object, after: Object) -> list[tuple[str, str, str]]:
    """Return type, reason and note of an Event for each transition."""
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
