"""Errors of the API server, distinguished by the way in which a caller handles them."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from kubefoundry_sdk._api.untrusted import mapping, mappings

UNDECLARED: Final = "failed to create typed patch object"
"""Beginning of the API server's message (500) for an apply with a field that the schema does not declare. Matched by
text, because that Status has neither reason nor details (seen on Kubernetes 1.36)."""
UNPATCHABLE: Final = "the server rejected our request due to an error in our request"
"""Message of the API server (422) for a JSON patch that does not fit the current object: a failed test, or a missing
path. Matched by text, because the reason is Invalid and the details are empty, as when a policy or a webhook answers
422 in its own words (seen on Kubernetes 1.36)."""
UNROUTED: Final = "404 page not found"
"""The API server's answer for a kind of a custom group, or of a version that its CRD does not have. Matched by text,
because that answer is no Status, and so has no reason (seen on Kubernetes 1.36). Proxies in Go use the same words, so
an answer without Audit-Id is not the API server's."""
TOO_LARGE: Final = ("etcdserver: request is too large", "trying to send message larger than max")
"""Messages of etcd and its client about an object beyond their limits. Matched by text, because the API server passes
both on as a 500 without details."""

WEBHOOK: Final = 'admission webhook "'
DENIED: Final = "denied the request"
"""Parts of the API server's message about a webhook's denial. Only the message distinguishes a denial from the API
server's own answer: code, reason and details come from the webhook, often from a request that the webhook sent."""

FIELD_CONFLICT: Final = "FieldManagerConflict"
"""Reason of a cause: another field manager owns the field (metav1.CauseTypeFieldManagerConflict)."""
TERMINATING: Final = "NamespaceTerminating"
"""Reason of a cause: the namespace is being deleted (corev1.NamespaceTerminatingCause)."""

NO_REASON: Final = "Unknown"
"""`reason` of a Status without a reason. Also used for a response that is not a Status, so not from the API
server."""

LONGEST: Final = 300.0
"""The longest `Retry-After` in seconds that is obeyed: a day would block a key for a day."""


class Cause(NamedTuple):
    """One cause in the details of a Status (metav1.StatusCause); empty where a value is not a string.

    Attributes:
        reason: The machine-readable word (`FieldManagerConflict`, `FieldValueInvalid` …).
        message: The server's message.
        field: The path of the field, as the server writes it: `.spec.x` for a conflict, `spec.x` for a value.
    """

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(NamedTuple):
    """The details of a Status (metav1.StatusDetails); empty where a value is not a string.

    Attributes:
        kind: The kind or the resource that the answer is about (`ConfigMap`, `configmaps`).
        name: The name of that object.
        causes: One for each field or obstacle.
    """

    kind: str = ""
    name: str = ""
    causes: tuple[Cause, ...] = ()


NO_DETAILS: Final = Details()


class ApiError(Exception):
    """An error `Status` of the API server.

    Attributes:
        code: The HTTP status.
        reason: The machine-readable word (`Conflict`, `Invalid` …).
        message: The server's message.
        details: The details of the Status.
        retry_after: Seconds that the server asks to wait, if it does.
        request: Method and path of the request, empty if unknown.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Details = NO_DETAILS,
        retry_after: float | None = None,
        request: str = "",
    ) -> None:
        super().__init__(
            f"{request}: {code} {reason}: {message}" if request else f"{code} {reason}: {message}"
        )
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after
        self.request = request

    @classmethod
    def from_status(
        cls, code: int, body: Any, *, retry_after: float | None = None, request: str = ""
    ) -> ApiError:
        """Return the error for a decoded `Status` body, or for the response of another server in between."""
        if isinstance(body, dict) and body.get("kind") == "Status":
            details, status_code = body.get("details"), body.get("code")
            if retry_after is None and isinstance(details, dict):
                retry_after = seconds(details.get("retryAfterSeconds"))
            return cls(
                status_code if isinstance(status_code, int) and status_code else code,
                str(body.get("reason") or NO_REASON),
                str(body.get("message") or ""),
                details=_details(details),
                retry_after=retry_after,
                request=request,
            )
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
        text = text[:500] or f"HTTP status {code} without a text"
        return cls(code, NO_REASON, text, retry_after=retry_after, request=request)

    @property
    def denied(self) -> bool:
        """Whether an admission webhook denied the request, with any code. A webhook's 404 is about another object."""
        return self.message.startswith(WEBHOOK) and DENIED in self.message

    @property
    def conflict(self) -> bool:
        """Whether another client has written meanwhile.

        It changed the object itself, whose watch event is on the way, or an object that admission updates (a
        ResourceQuota).
        """
        return self.code == 409 and self.reason != "AlreadyExists" and not self.denied

    @property
    def outdated(self) -> bool:
        """Whether a JSON patch does not fit, because the object has changed: in effect a conflict."""
        return self.code == 422 and self.message.startswith(UNPATCHABLE)

    @property
    def not_found(self) -> bool:
        """Whether the object or its kind does not exist."""
        return self.code == 404 and not self.denied

    @property
    def gone(self) -> bool:
        """Whether the resource version is too old, so that the caller has to list again."""
        return self.code == 410 and not self.denied

    @property
    def conflicting_fields(self) -> tuple[str, ...]:
        """Return the fields of an apply without force that other managers own, as `.spec.x`."""
        return tuple(cause.field for cause in self.details.causes if cause.reason == FIELD_CONFLICT)

    @property
    def in_deleted_namespace(self) -> bool:
        """Check whether the namespace is being deleted, so that it takes no new object."""
        return not self.denied and any(cause.reason == TERMINATING for cause in self.details.causes)

    @property
    def rejected(self) -> bool:
        """Whether the content was refused: any 4xx apart from transient ones (contract §4).

        Two refusals are a 500: an apply of a field that the kind's schema does not declare, and an object too large
        for etcd (seen on Kubernetes 1.36).
        """
        if self.code == 500:
            return self.message.startswith(UNDECLARED) or any(words in self.message for words in TOO_LARGE)
        return 400 <= self.code < 500 and self.code not in (401, 404, 408, 409, 410, 429)


class Repeated(ApiError):
    """Nothing was sent: the same write was accepted several times in a row, but its result does not last."""

    def __init__(self, request: str, times: int, every: float) -> None:
        message = (
            f"this write was sent {times} times in a row and does not last: somebody deletes the object or changes "
            f"it back (a user, an admission webhook, another controller). Until that ends it is sent every "
            f"{every:.0f} s at most"
        )
        super().__init__(429, "TooManyRequests", message, request=request)


class Unreachable(Exception):
    """No usable response: refused, lost, timed out, or content that no API server sends. Names the request.

    Attributes:
        retry_after: Seconds that a server in between asks to wait, if it does.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ForeignAnswer(Unreachable):
    """Another server has answered, such as a proxy: no API server answers like that.

    Attributes:
        code: The HTTP status if it is an error, otherwise 0.
    """

    def __init__(self, message: str, code: int = 0, *, retry_after: float | None = None) -> None:
        super().__init__(message, retry_after=retry_after)
        self.code = code


class NoToken(Unreachable):
    """Nothing was sent: there is no token for the API server."""


class Fenced(Unreachable):
    """Nothing was sent: this replica may not write at the moment."""


class TooLong(Unreachable):
    """More bytes than allowed: the rest was not read."""


class Compressed(Unreachable):
    """A server behind the API server's proxy compressed its response, which was not requested."""


class Silent(Unreachable):
    """A watch was silent for longer than a working server is."""


def _details(stated: object) -> Details:
    """Read the details of a Status without trusting them: a webhook may have written them."""
    parts = mapping(stated)
    return Details(
        _text(parts.get("kind")),
        _text(parts.get("name")),
        tuple(
            Cause(_text(cause.get("reason")), _text(cause.get("message")), _text(cause.get("field")))
            for cause in mappings(parts.get("causes"))
        ),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def seconds(value: Any) -> float | None:
    """Return the seconds that a server asks to wait, from a header or a Status, at most LONGEST.

    Return None if the value is not a number.
    """
    try:
        requested = float(value) if isinstance(value, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return None
    return min(requested, LONGEST) if requested > 0 else None
