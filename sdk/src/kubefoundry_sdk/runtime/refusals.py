"""What the API server's refusals mean to the user, and when to retry (contract §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubefoundry_sdk.api.kinds import Kind
from kubefoundry_sdk.cluster.errors import ApiError

PERMISSION: Final = 5.0
"""Seconds after which a write without permission is retried. An API server that has just started grants it once it
has loaded its roles; otherwise an administrator has to."""

RETRY: Final = 300.0
"""Seconds after which any other refused manifest is retried though nothing has changed (contract §4)."""


class Refused(Exception):
    """The API server, its admission or its quota refused an object of ours; the text is for the user.

    retry: seconds after which to retry though nothing has changed.
    """

    def __init__(self, message: str, retry: float = RETRY) -> None:
        super().__init__(message)
        self.retry = retry


class Refusal:
    """Which manifest of an object was refused last, when and why, so that it is not retried at every event."""

    def __init__(self) -> None:
        self._last: tuple[str, float, str] | None = None
        """Digest, moment from which another try is worth it, and text."""

    def standing(self, digest: str, now: float) -> tuple[str, float] | None:
        """The refusal of this very manifest and the seconds until its retry."""
        last = self._last
        if last is None or last[0] != digest or now >= last[1]:
            return None
        return last[2], last[1] - now

    def remember(self, digest: str, now: float, refused: Refused) -> None:
        self._last = (digest, now + refused.retry, str(refused))

    def over(self) -> None:
        """Nothing is refused any more."""
        self._last = None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an object comes from: the kind of resource that a user edits to change it, and how messages name the
    ServiceAccount that writes it."""

    kind: str
    account: str


def refused(kind: Kind, name: str, error: ApiError, origin: Origin) -> Refused:
    """What was refused, in the server's own words, and what to do (contract §4; a 403 has several causes)."""
    remedy, retry = f"change the {origin.kind} accordingly", RETRY
    if error.code == 403:
        remedy, retry = _forbidden(error.message, origin)
    return Refused(f"{kind.kind} '{name}' was refused: {error.message}; {remedy}", retry)


def _forbidden(message: str, origin: Origin) -> tuple[str, float]:
    """The cause of a 403 by its words, in this order: a policy may use any words itself."""
    policy = f"change the {origin.kind} or contact the owner of that policy"
    known = (
        ("admission webhook", policy, RETRY),
        ("AdmissionPolicy", policy, RETRY),
        ("exceeded quota", "request less or have the quota raised", RETRY),
        ("being terminated", "the namespace is being deleted", RETRY),
        (" cannot ", f"grant {origin.account} that permission", PERMISSION),
    )
    for words, remedy, retry in known:
        if words in message:
            return remedy, retry
    return f"change the {origin.kind} or contact the cluster's administrator", RETRY
