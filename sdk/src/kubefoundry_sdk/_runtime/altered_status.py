"""Remembers status writes of which admission changed a part, to report them and to repeat them rarely (contract §4).

The API server accepts such a write, so no error shows it, and often no event follows that would repeat it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._cluster.rate import Bucket
from kubefoundry_sdk._runtime import backoff
from kubefoundry_sdk._runtime.refusals import PendingRefusal, Refusal, Refused

AGAIN: Final = backoff.Backoff(30.0, 60.0)
"""The delays until an equal status is sent again. No event tells that the webhook is gone, and a user who waits for
that looks again within a minute."""

BURST: Final = 10
EVERY: Final = 20.0
"""Altered statuses of one object that are followed at once by one with other content, and seconds until one more is.
A webhook may change what the next status depends on, so that two statuses take turns."""


@dataclass(slots=True)
class _Altered:
    refusal: Refusal = field(default_factory=Refusal)
    bucket: Bucket = field(default_factory=lambda: Bucket(BURST, EVERY))
    text: str = ""
    """What admission changed in the last write, empty if it was stored as sent."""


class AlteredStatuses:
    """The last status write to each object of a store that admission altered. Objects are named by their keys."""

    def __init__(self) -> None:
        self._objects: dict[Hashable, _Altered] = {}

    def text(self, key: Hashable) -> str:
        """Return what admission changed in the last status write, empty if that was stored as sent."""
        altered = self._objects.get(key)
        return altered.text if altered else ""

    def left(self, key: Hashable, now: float) -> float | None:
        """Return the seconds until the status is to be sent again, None if there is nothing to repeat.

        Call it after a reconcile: a status that was due and was not sent is not wanted any more.
        """
        altered = self._objects.get(key)
        if altered is None or not altered.text:
            return None
        if pending := altered.refusal.latest(now):
            return pending.left
        self.settle(key)
        return None

    def pending(self, key: Hashable, digest: str, now: float) -> PendingRefusal | None:
        """Return the alteration of an equal status if it is too early to send that again.

        Raises:
            ApiError: A status with other content has to wait, too.
        """
        altered = self._objects.get(key)
        if altered is None:
            return None
        if pending := altered.refusal.pending(digest, now):
            return pending
        if wait := altered.bucket.wait(now):
            text = f"admission changed {BURST} statuses in a row, so one is sent every {EVERY:.0f} s at most"
            raise ApiError(429, "TooManyRequests", text, retry_after=wait)
        return None

    def note(self, key: Hashable, digest: str, now: float, text: str) -> None:
        """Record a status that was sent. `text` is what admission changed, empty if it was stored as sent."""
        if not text:
            self.settle(key)
            return
        altered = self._objects.setdefault(key, _Altered())
        altered.refusal.remember(digest, now, Refused(text, gradual=AGAIN))
        altered.bucket.take()
        altered.text = text

    def settle(self, key: Hashable) -> None:
        """Record that the object has the status that it should have."""
        if altered := self._objects.get(key):
            altered.refusal.reset()
            altered.text = ""

    def forget(self, key: Hashable) -> None:
        """Forget an object that is gone."""
        self._objects.pop(key, None)
