"""Events for problems that no status can report.

They are an object that a process does not read, and a failed reconcile.
"""

from __future__ import annotations

from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.errors import ApiError, Repeated
from kubefoundry_sdk._cluster.logs import described
from kubefoundry_sdk._runtime.recorder import Recorder


def left_out(recorder: Recorder, component: str, kind: Kind, obj: Object) -> None:
    """Emit the Event about an object for which its namespace has no room left (`memory_quota`)."""
    about = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": obj["metadata"]}
    note = (
        f"{component} does not read this {kind.kind}, and maybe others in its namespace: together they would take "
        "too much of the component's memory; delete some, or make labels, annotations and content smaller"
    )
    recorder.event(about, "Warning", "TooMuchInNamespace", note)


def altered(recorder: Recorder, component: str, live: Object, text: str) -> None:
    """Emit the Event about a status that admission changed. The status itself may not show it."""
    note = f"A write of {component} was changed: {text}; repeating it with back-off"
    recorder.event(live, "Warning", "WriteRejected", note)


def failed(recorder: Recorder, component: str, live: Object, error: Exception) -> None:
    """Emit the Event about a failed reconcile.

    The status cannot report it: the API server refused the status, or the error came before the status was written.
    """
    if isinstance(error, Repeated):
        note = f"{component} stops a write that repeats itself: {error}"
        recorder.event(live, "Warning", "WriteRejected", note)
    elif isinstance(error, ApiError) and not error.rejected:
        note = f"A request of {component} keeps failing: {error}; retrying with back-off"
        recorder.event(live, "Warning", "WriteRejected", note)
    elif isinstance(error, ApiError):
        note = f"A write of {component} was rejected: {error}; retrying with back-off"
        recorder.event(live, "Warning", "WriteRejected", note)
    else:
        note = (
            f"{component} failed with an internal error while it reconciled this "
            f"{live['kind']}: {described(error)}; retrying with "
            "back-off, its log has more"
        )
        recorder.event(live, "Warning", "InternalError", note)
