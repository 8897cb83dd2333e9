"""Unexpected errors that end a reconcile's writes: reported to the user and retried with back-off (contract §4).

A transient error is reported the second time in a row; a permanent one, and an error in the provider's own code,
immediately. Until the retry is due, reconciles only observe and write nothing upstream, because each write of the
status causes an event and so another reconcile. After a conflict, a change of the upstream object causes an immediate
retry.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote

from kubefoundry_sdk._api import names, reasons
from kubefoundry_sdk._api.kinds import HELPER_KINDS, MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._cluster.errors import ApiError, Repeated
from kubefoundry_sdk._cluster.logs import described
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.reconcile.report import Report, Stop
from kubefoundry_sdk._provider.results import Fault
from kubefoundry_sdk._runtime import backoff

CONFLICTS: Final = 3
"""Conflicts in a row that are retried at once and not reported, if the upstream object has changed each time."""


_VERBS: Final = {"GET": "read", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class _Failed:
    mark: str
    version: str
    retries_on_change: bool
    count: int
    due: float
    report: Report | None


class Failures:
    """The last failure for a ModelDeployment, the number of failures in a row, and the time of the retry."""

    def __init__(self) -> None:
        self._last: _Failed | None = None

    def pending(self, mark: str, version: str, now: float) -> tuple[Report | None, float] | None:
        """Return the report of a failure and the seconds until its retry, or None to try now.

        `version` is the known state of the upstream object, empty if there is none.
        """
        last = self._of(mark)
        if last is None or now >= last.due or (last.retries_on_change and last.version != version):
            return None
        return last.report, last.due - now

    def note(
        self, mark: str, version: str, error: Exception, report: Report, stop: Stop, now: float
    ) -> float:
        """Add `stop` to the report if the failure is to be reported. Return the seconds until the retry."""
        last = self._of(mark)
        count = last.count + 1 if last else 1
        is_transient = _is_transient(error)
        # A conflict although the object is unchanged has another cause: a ResourceQuota.
        is_new_state = last is None or last.version != version
        retries_on_change = (
            isinstance(error, ApiError) and error.conflict and is_new_state and count <= CONFLICTS
        )
        reported = None
        if not is_transient or (count > 1 and not retries_on_change):
            report.stop = stop
            reported = replace(report, notes=list(report.notes))
        delay = _delay(count, error)
        self._last = _Failed(mark, version, retries_on_change, count, now + delay, reported)
        return delay

    def _of(self, mark: str) -> _Failed | None:
        return self._last if self._last is not None and self._last.mark == mark else None

    def reset(self) -> None:
        """Forget the failure, because a reconcile has completed."""
        self._last = None


def _is_transient(error: Exception) -> bool:
    # A 403 may pass, too: an API server that has just started has not loaded its roles yet.
    return isinstance(error, ApiError) and (not error.rejected or error.code == 403)


def _delay(count: int, error: Exception) -> float:
    """Return the seconds until the retry after that many failures in a row."""
    if isinstance(error, ApiError) and not _is_transient(error):
        return backoff.OBJECT.last
    return backoff.delay(count, error)


class Removal:
    """The last failed request of a clean-up: its objects, the failures in a row, and the time of the next request."""

    def __init__(self) -> None:
        self._objects: tuple[str, ...] = ()
        self._due = 0.0
        self.failures = 0

    def left(self, objects: Sequence[str], now: float) -> float:
        """Return the seconds until the next request about these objects, 0 if it may be sent now."""
        return max(0.0, self._due - now) if self._objects == tuple(objects) else 0.0

    def failed(self, objects: Sequence[str], error: ApiError, now: float) -> float:
        """Note a failure. Return the seconds until the next request."""
        self.failures = self.failures + 1 if self._objects == tuple(objects) else 1
        self._objects = tuple(objects)
        delay = backoff.delay(self.failures, error)
        self._due = now + delay
        return delay


def mark(deployment: Object, upstream: Object | None, digest: str | None, own_finalizer: str) -> str:
    """Return a digest of the state. A change of it causes an immediate retry.

    The state is uid, generation, labels, annotations and finalizers of the ModelDeployment, the selected engine, the
    uid and deletion of the upstream object, and the digest of its CRD's schema. Our finalizer and the dry-run result
    do not count, because the reconcile itself may have written them.
    """
    meta = deployment["metadata"]
    annotations = dict(meta.get("annotations") or {})
    annotations.pop(names.DRY_RUN_RESULT_ANNOTATION, None)
    upstream_meta = (upstream or {}).get("metadata") or {}
    parts = [
        *(meta.get(name) for name in ("uid", "generation", "labels")),
        LiveModelDeployment(deployment).provider.get("engine"),
        [name for name in meta.get("finalizers") or () if name != own_finalizer],
        annotations,
        digest,
        upstream_meta.get("uid"),
        "deletionTimestamp" in upstream_meta,
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def stop(provider: Provider, error: Exception) -> Stop:
    """Return the condition that reports the failure."""
    if isinstance(error, Fault):
        message = (
            f"Provider {provider.name} has an error: {error}; report it to its authors, its log has more"
        )
        return Stop(reasons.RESOURCE_CREATED, "ProviderError", message, failed=True)
    if not isinstance(error, ApiError):
        message = f"Provider {provider.name} failed with an internal error: {described(error)}; see its log"
        return Stop(reasons.RESOURCE_CREATED, "ProviderError", message, failed=True)
    request = _named(provider, error.request)
    if error.rejected:
        message = f"The API server refused a write of provider {provider.name}: {request}{error.message}"
        return Stop(reasons.RESOURCE_CREATED, "ApplyRejected", message, failed=True)
    if isinstance(error, Repeated):
        # This process held the write back; no server answered.
        message = f"A write is held back: {request}{error.message}"
    else:
        answer = f"{error.code} {error.reason}: {error.message}"
        message = f"A write failed and is tried again: {request}{answer}"
    return Stop(reasons.RESOURCE_CREATED, "ApplyFailed", message, failed=False)


def _named(provider: Provider, request: str) -> str:
    """Return the verb of a request, and kind and name of its object, before a colon; empty if they are unknown."""
    method, _, url = request.partition(" ")
    verb, segments = _VERBS.get(method), url.partition("?")[0].strip("/").split("/")
    # /api/VERSION/… or /apis/GROUP/VERSION/…
    parts = segments[2 if segments[0] == "api" else 3 :]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    if verb is None or not parts:
        return ""
    kinds = {kind.plural: kind.kind for kind in (MODEL_DEPLOYMENTS, *HELPER_KINDS.values())}
    kind = {**kinds, provider.upstream.plural: provider.upstream.kind}.get(parts[0], parts[0])
    named = f"{kind} '{unquote(parts[1])}'" if len(parts) > 1 else kind
    return f"{verb} {named if len(parts) < 3 else f'{parts[2]} of {named}'}: "


def repeat(report: Report, earlier: Report) -> None:
    """Make the report repeat the earlier report of the failure."""
    for name in ("compatible", "created", "override_warning", "stop", "notes"):
        setattr(report, name, getattr(earlier, name))
