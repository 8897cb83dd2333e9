"""Admission of others, and failures of the API server, that last for some time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk.testing._server.requests import JSON_PATCH, Answer, Request
from simulation.operators import OPERATORS
from simulation.server import Place, Policy, refusal

MODELS: Final = (names.GROUP, names.MODEL_DEPLOYMENTS)
UPSTREAM: Final = frozenset((kind.group, kind.plural) for _, kind in OPERATORS.values())


def _is_ours(request: Request) -> bool:
    return request.user_agent.startswith("kubefoundry-")


def strip_finalizers(request: Request, place: Place, body: Any, before: Object | None) -> Request | Answer:
    """Remove our finalizers from applies, as a mutating webhook does."""
    if place.storage == MODELS and _is_ours(request) and isinstance(body, dict):
        meta = body.get("metadata") or {}
        if "finalizers" in meta:
            kept = {name: value for name, value in meta.items() if name != "finalizers"}
            return request._replace(body=json.dumps({**body, "metadata": kept}).encode())
    return request


def deny_finalizers(request: Request, place: Place, body: Any, before: Object | None) -> Request | Answer:
    """Refuse applies with finalizers, as a ValidatingAdmissionPolicy does."""
    meta = (body.get("metadata") or {}) if isinstance(body, dict) else {}
    if place.storage == MODELS and not place.subresource and _is_ours(request) and meta.get("finalizers"):
        return _denied("finalizers of that kind are not allowed")
    return request


def deny_removal(request: Request, place: Place, body: Any, before: Object | None) -> Request | Answer:
    """Refuse the removal of finalizers with 422, the default code of a policy."""
    if place.storage == MODELS and _is_ours(request) and request.content_type == JSON_PATCH:
        return _denied("finalizers must stay")
    return request


def rewrite_labels(request: Request, place: Place, body: Any, before: Object | None) -> Request | Answer:
    """Replace a label of ours at each write of an upstream object, as a list of allowed labels does."""
    if place.storage in UPSTREAM and _is_ours(request) and isinstance(body, dict) and not place.subresource:
        labels = (body.get("metadata") or {}).get("labels") or {}
        if f"{names.PREFIX}provider" in labels:
            meta = {**body["metadata"], "labels": {**labels, f"{names.PREFIX}provider": "platform"}}
            return request._replace(body=json.dumps({**body, "metadata": meta}).encode())
    return request


def failing_webhook(code: int, reason: str, text: str) -> Policy:
    """Return a webhook that fails all our writes of upstream objects, apart from deletions."""

    def decide(request: Request, place: Place, body: Any, before: Object | None) -> Request | Answer:
        if place.storage in UPSTREAM and _is_ours(request) and request.method != "DELETE":
            return refusal(code, reason, text)
        return request

    return decide


def quota(count: Callable[[Place], int]) -> Policy:
    """Return an exact quota of one upstream object."""

    def decide(request: Request, place: Place, body: Any, before: Object | None) -> Request | Answer:
        is_create = request.method in ("POST", "PATCH") and before is None and place.subresource == ""
        if place.storage in UPSTREAM and _is_ours(request) and is_create and count(place) >= 1:
            head = f'{place.storage[1]} "{place.key[1]}" is forbidden: exceeded quota: models'
            text = f"{head}, requested: count=1, used: count=1, limited: count=1"
            return refusal(403, "Forbidden", text)
        return request

    return decide


def unlisted(storage: tuple[str, str]) -> Policy:
    """Return a failure of all reads of a kind, as of a conversion webhook that is down."""

    def decide(request: Request, place: Place, body: Any, before: Object | None) -> Request | Answer:
        if place.storage == storage and _is_ours(request) and request.method == "GET":
            text = f"conversion webhook for {storage[1]} failed: connect: connection refused"
            return refusal(500, "InternalError", text)
        return request

    return decide


def _denied(text: str) -> Answer:
    message = f"modeldeployments is forbidden: ValidatingAdmissionPolicy 'platform' denied request: {text}"
    return refusal(422, "Invalid", message)


POLICIES: Final[dict[str, Policy]] = {
    "strip-finalizers": strip_finalizers,
    "deny-finalizers": deny_finalizers,
    "deny-removal": deny_removal,
    "rewrite-labels": rewrite_labels,
    "cold-webhook": failing_webhook(
        400,
        "BadRequest",
        'admission webhook "validation.upstream" denied the request: validation failed: '
        "Failed to list nodes with labelSelector: the cache is not started, can not read objects",
    ),
    "webhook-down": failing_webhook(
        500,
        "InternalError",
        'Internal error occurred: failed calling webhook "validation.upstream": connect: connection refused',
    ),
}
