"""JSON patch operations for small changes of a model: pause, resume, reselect, refresh, scale."""

from __future__ import annotations

from datetime import UTC, datetime

from kubefoundry_cli.edit import Operations, annotation
from kubefoundry_cli.failure import Failure
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.conditions import rfc3339
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._api.validation import default


def paused(obj: Object) -> Operations:
    """Return the operations that pause a model: its pods keep running, and edits have no effect."""
    held = LiveModelDeployment(obj).is_paused
    return [] if held else annotation(obj, names.PAUSED_ANNOTATION, "true")


def resumed(obj: Object) -> Operations:
    """Return the operations that end a pause."""
    return annotation(obj, names.PAUSED_ANNOTATION, None)


def reselected(obj: Object) -> Operations:
    """Return the operations that request a new selection. A value that differs from the last one is a request."""
    return annotation(obj, names.RESELECT_ANNOTATION, rfc3339(datetime.now(UTC)))


def refreshed(obj: Object) -> Operations:
    """Return the operations that request a new render with the current defaults."""
    return annotation(obj, names.REFRESH_ANNOTATION, rfc3339(datetime.now(UTC)))


def scaled(obj: Object, replicas: int) -> Operations:
    """Return the operations that scale an aggregated model. Raises Failure for a disaggregated model."""
    spec = default(obj["spec"])
    if spec["serving"]["mode"] != "aggregated":
        raise Failure(
            f"ModelDeployment '{obj['metadata']['name']}' is disaggregated: set spec.scaling.prefill.replicas and "
            "spec.scaling.decode.replicas"
        )
    if spec["scaling"]["replicas"] == replicas:
        return []
    if "scaling" not in obj["spec"]:
        return [{"op": "add", "path": "/spec/scaling", "value": {"replicas": replicas}}]
    return [{"op": "add", "path": "/spec/scaling/replicas", "value": replicas}]
