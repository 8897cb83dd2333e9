"""Find the reasons why edits of a ModelDeployment have no effect upstream for now, or never will."""

from __future__ import annotations

from kubefoundry_cli.failure import Failure
from kubefoundry_cli.health import PHRASES, health_of
from kubefoundry_cli.hint import hint
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object


def check_not_deleted(obj: Object) -> None:
    """Raise Failure if the object is being deleted."""
    if text := deletion(obj):
        raise Failure(f"ModelDeployment '{obj['metadata']['name']}' {text}: an edit changes nothing upstream")


def deletion(obj: Object) -> str | None:
    """Describe the deletion of the object and its finalizers. Return None if the object is not being deleted."""
    health = health_of(obj)
    return f"{PHRASES[health.state]}, {health.reason}" if health.state == "Deleting" else None


def pause(obj: Object) -> str:
    """Describe the pause of a paused object, and how to end it."""
    meta = obj["metadata"]
    return f"paused: nothing changes until {hint('resume ' + meta['name'], meta.get('namespace'))}"


def suspensions(obj: Object) -> list[str]:
    """Return the reasons why the controllers do not act on the object now, empty if they do."""
    annotations = obj["metadata"].get("annotations") or {}
    reasons = []
    if annotations.get(names.PAUSED_ANNOTATION) == "true":
        reasons.append(pause(obj))
    if annotations.get(names.DRY_RUN_ANNOTATION) == "true":
        reasons.append(f"annotation {names.DRY_RUN_ANNOTATION}: nothing changes while it is true")
    return reasons
