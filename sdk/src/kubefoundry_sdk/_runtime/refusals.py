"""The meaning of the API server's refusals for the user, and when to retry (contract §4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from kubefoundry_sdk._api.kinds import Kind
from kubefoundry_sdk._cluster.errors import DENIED, ApiError
from kubefoundry_sdk._runtime import backoff

PERMISSION: Final = 5.0
"""Seconds after which a write without permission is retried. An API server that has just started permits it once it
has loaded its roles. Otherwise an administrator has to grant the permission."""

QUOTA: Final = 30.0
"""Seconds after which a write that a quota refused is retried. We see no event if the deletion of another object, or
an administrator, makes room."""

RETRY: Final = 300.0
"""Seconds after which any other refused manifest is retried without a change (contract §4)."""

PASSING: Final = 30.0
"""Seconds for which a refusal that may pass is retried with back-off from the first delay. After that it is reported
like any other refusal, and retried after `QUOTA` or `backoff.FAULT_DELAY`."""

GRADUAL: Final = backoff.Backoff(5.0, RETRY)
"""The delays after an apply of which admission took a part away. No event tells that the webhook is gone. The first
delay is long enough that several writes in a row are not a stream."""

_WEBHOOK: Final = "admission webhook"
_UNCOUNTED: Final = "status unknown for quota"
"""Part of a ResourceQuota's refusal before Kubernetes has counted its usage, mostly within a second of its creation
(plugin resourcequota, Kubernetes 1.36)."""
_MAY_PASS: Final = (
    "cache is not started",
    "cache has not started",
    "not found",
    "failed to get ",
    "failed to list ",
    "connection refused",
    "connection reset",
    "deadline exceeded",
    "timeout",
    "timed out",
    "not ready",
    "starting",
    "try again",
    "unavailable",
)
"""Texts in a denial by an admission webhook that could not read a required object. KAITO's webhook sends such denials
while its cache starts, and while the cache lacks the ConfigMap that we created a moment before (seen with 0.12)."""


class Obstacle(Enum):
    """The cause of a refusal."""

    POLICY = "a policy or an admission webhook"
    QUOTA = "a quota"
    NAMESPACE = "a namespace that is being deleted"
    PERMISSION = "a missing permission"
    OTHER = "anything else"


_POLICY: Final = "AdmissionPolicy"
_DENIED_BY_POLICY: Final = "denied request: "
"""Parts of the message of a denial by a ValidatingAdmissionPolicy.

Its code is 422 unless the policy names a reason, as for an invalid object. But a policy may demand something that no
field of a ModelDeployment sets, such as a label.
"""

_OBSTACLES: Final = {
    _WEBHOOK: Obstacle.POLICY,
    _POLICY: Obstacle.POLICY,
    "exceeded quota": Obstacle.QUOTA,
    "insufficient quota": Obstacle.QUOTA,
    " cannot ": Obstacle.PERMISSION,
}
"""Causes of a 403 by a part of the server's message. They are tried in this order, because a policy's message may
contain any words.

Matched by text, because reason (`Forbidden`) and details (kind and name of the object) are the same for all of them
(seen on Kubernetes 1.36).
"""


class Refused(Exception):
    """The API server, its admission or its quota refused an object of ours; the text is for the user.

    Attributes:
        retry: Seconds after which to retry without a change.
        may_pass: Whether the refusal may end without a change of the object. Then the first retries come soon.
        lacking: The API server's message without our advice if the writer lacks a permission, empty otherwise.
        obstacle: The cause, as far as the server's answer has it.
        gradual: The delays of the retries, up to `retry`; None for `retry` from the first on.
    """

    def __init__(
        self,
        message: str,
        retry: float = RETRY,
        *,
        may_pass: bool = False,
        lacking: str = "",
        obstacle: Obstacle = Obstacle.OTHER,
        gradual: backoff.Backoff | None = None,
    ) -> None:
        super().__init__(message)
        self.retry = retry
        self.may_pass = may_pass
        self.lacking = lacking
        self.obstacle = obstacle
        self.gradual = gradual


class PendingRefusal(NamedTuple):
    """A refusal whose retry is not due.

    Attributes:
        text: The refusal, for the user.
        left: Seconds until the retry is due.
        is_transient: Whether the refusal may still pass by itself.
    """

    text: str
    left: float
    is_transient: bool


@dataclass(frozen=True, slots=True)
class _Last:
    digest: str
    since: float
    count: int
    due: float
    text: str
    is_transient: bool


class Refusal:
    """Which manifest of an object was refused last, when and why, so that it is not retried at every event."""

    def __init__(self) -> None:
        self._last: _Last | None = None

    def pending(self, digest: str, now: float) -> PendingRefusal | None:
        """Return the refusal of this manifest if its retry is not due, otherwise None."""
        return self.latest(now) if self._last is not None and self._last.digest == digest else None

    def latest(self, now: float) -> PendingRefusal | None:
        """Return the last refusal, of any manifest, if its retry is not due, otherwise None."""
        last = self._last
        if last is None or now >= last.due:
            return None
        return PendingRefusal(last.text, last.due - now, last.is_transient)

    def remember(self, digest: str, now: float, refused: Refused) -> PendingRefusal:
        """Record that the manifest was refused. Return the refusal, with the time of its retry."""
        last = self._last
        is_same = last is not None and last.digest == digest
        since = last.since if is_same and last else now
        count = last.count + 1 if is_same and last else 0
        is_transient = refused.may_pass and now - since < PASSING
        retry = refused.retry
        if delays := backoff.OBJECT if is_transient else refused.gradual:
            retry = min(delays.after(count + 1), retry)
        self._last = _Last(digest, since, count, now + retry, str(refused), is_transient)
        return PendingRefusal(str(refused), retry, is_transient)

    @property
    def repeated(self) -> bool:
        """Whether the manifest was refused more than once in a row."""
        return self._last is not None and self._last.count > 0

    def reset(self) -> None:
        """Forget the refusal."""
        self._last = None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an object comes from.

    Attributes:
        kind: The kind of resource that a user edits to change the object.
        account: The ServiceAccount that writes the object, as messages name it.
    """

    kind: str
    account: str


def refused(kind: Kind, name: str, error: ApiError, origin: Origin) -> Refused:
    """Return the error for a refused write: the server's own words, and what to do."""
    advice = remedy(error, origin)
    words = f"{kind.kind} '{name}' was refused: {error.message}"
    return Refused(
        f"{words}; {advice.text}",
        advice.retry,
        may_pass=may_pass(error),
        lacking=words if advice.obstacle is Obstacle.PERMISSION else "",
        obstacle=advice.obstacle,
    )


def policy_advice(origin: Origin) -> str:
    """Return what to do if a policy denies a write, or takes back or removes a part of it."""
    return f"change the {origin.kind} or contact the owner of that policy"


class Remedy(NamedTuple):
    """Advice about a refusal.

    Attributes:
        text: The advice.
        retry: Seconds until a retry without a change.
        obstacle: The cause of the refusal.
    """

    text: str
    retry: float
    obstacle: Obstacle = Obstacle.OTHER


def remedy(error: ApiError, origin: Origin) -> Remedy:
    """Return the advice about a refusal (contract §4; a 403 has several causes)."""
    if _is_uncounted(error):
        return Remedy(
            "Kubernetes has not counted what that quota limits yet, so the write is tried again; if this lasts, ask "
            "an administrator to check the controller manager",
            QUOTA,
        )
    if may_pass(error):
        return Remedy(
            "the webhook could not check it, so the write is tried again; if this lasts, ask an administrator "
            "to check the webhook's operator and the objects that it names",
            backoff.FAULT_DELAY,
            Obstacle.POLICY,
        )
    if error.code == 403:
        return _forbidden(error, origin)
    if _POLICY in error.message and _DENIED_BY_POLICY in error.message:
        return Remedy(policy_advice(origin), RETRY)
    return Remedy(f"change the {origin.kind} accordingly", RETRY)


def may_pass(error: ApiError) -> bool:
    """Check whether admission could not decide: a webhook could not read an object, or a quota is not counted yet.

    Matched by text: code, reason and details of a denial are the webhook's own, the same for every denial.
    """
    if _is_uncounted(error):
        return True
    words = error.message.lower()
    _, webhook, denial = words.partition(_WEBHOOK)
    return bool(webhook) and DENIED in denial and any(text in denial for text in _MAY_PASS)


def _is_uncounted(error: ApiError) -> bool:
    return error.code == 403 and _UNCOUNTED in error.message and not error.denied


def obstacle(error: ApiError) -> Obstacle:
    """Return the cause of a 403."""
    if error.in_deleted_namespace:
        return Obstacle.NAMESPACE
    return next((cause for words, cause in _OBSTACLES.items() if words in error.message), Obstacle.OTHER)


def _forbidden(error: ApiError, origin: Origin) -> Remedy:
    cause = obstacle(error)
    text, retry = {
        Obstacle.POLICY: (policy_advice(origin), RETRY),
        Obstacle.QUOTA: ("request less or have the quota raised", QUOTA),
        Obstacle.NAMESPACE: ("the namespace is being deleted", RETRY),
        Obstacle.PERMISSION: (f"ask an administrator to grant {origin.account} that permission", PERMISSION),
        Obstacle.OTHER: (f"change the {origin.kind} or contact the cluster's administrator", RETRY),
    }[cause]
    return Remedy(text, retry, cause)
