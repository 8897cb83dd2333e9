"""Remembers status writes of which admission changed a part, to report them and to repeat them rarely (contract §4).

The API server accepts such a write, so no error shows it, and often no event follows that would repeat it. A writer
that starts from the live status would take the changed values over, and nothing would be left to repeat. So a store
returns the object with our status as it was sent, as long as it is not stored like that.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kubefoundry_sdk._api import managed_fields
from kubefoundry_sdk._api.conditions import find
from kubefoundry_sdk._api.kinds import Object
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


class Sent(NamedTuple):
    """A status as it was sent.

    Attributes:
        uid: The uid of the object.
        manager: The field manager.
        status: The status.
    """

    uid: str
    manager: str
    status: Object


@dataclass(slots=True)
class _Altered:
    refusal: Refusal = field(default_factory=Refusal)
    bucket: Bucket = field(default_factory=lambda: Bucket(BURST, EVERY))
    text: str = ""
    """What admission changed in the last write, empty if it was stored as sent."""
    sent: Sent | None = None
    """The last write of which admission changed a part."""


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

    def note(self, key: Hashable, digest: str, now: float, text: str, sent: Sent | None = None) -> None:
        """Record a status that was sent. `text` is what admission changed, empty if it was stored as sent."""
        if not text:
            self.settle(key)
            return
        altered = self._objects.setdefault(key, _Altered())
        altered.refusal.remember(digest, now, Refused(text, gradual=AGAIN))
        altered.bucket.take()
        altered.text, altered.sent = text, sent

    def as_sent(self, key: Hashable, live: Object) -> Object:
        """Return the object with our last status as it was sent, if admission changed that.

        A field that another manager has taken over since keeps its value.
        """
        sent = altered.sent if (altered := self._objects.get(key)) and altered.text else None
        if sent is None or sent.uid != live["metadata"].get("uid"):
            return live
        meta, status = live["metadata"], live.get("status") or {}
        owned = managed_fields.owned(live, sent.manager, "status")
        if owned is None:
            # Admission has removed our entry, too. Another value may be that of a manager that took the field over.
            part = _unchanged(sent.status, status)
            owned = {"f:status": managed_fields.fields_of(part)}
            entry = {
                "manager": sent.manager,
                "operation": "Apply",
                "subresource": "status",
                "fieldsV1": owned,
            }
            meta = {**meta, "managedFields": [*(meta.get("managedFields") or ()), entry]}
        return {
            **live,
            "metadata": meta,
            "status": _restored(status, sent.status, owned.get("f:status") or {}),
        }

    def settle(self, key: Hashable) -> None:
        """Record that the object has the status that it should have."""
        if altered := self._objects.get(key):
            altered.refusal.reset()
            altered.text, altered.sent = "", None

    def forget(self, key: Hashable) -> None:
        """Forget an object that is gone."""
        self._objects.pop(key, None)


def _restored(status: Object, sent: Object, fields: managed_fields.Fields) -> Object:
    """Return a status in which the owned fields have the values that were sent."""
    conditions = {item.get("type"): item for item in status.get("conditions") or ()}
    for type_, owned in managed_fields.conditions(fields).items():
        if item := find(sent.get("conditions"), type_):
            part = managed_fields.project(item, owned)
            conditions[type_] = {"type": type_, **conditions.get(type_, {}), **part}
    others = {name: below for name, below in fields.items() if name != "f:conditions"}
    restored = _merged(status, managed_fields.project(sent, others)) if others else dict(status)
    return {**restored, "conditions": list(conditions.values())} if conditions else restored


def _merged(live: Object, part: Object) -> Object:
    """Return a map with a part of it replaced."""
    merged = dict(live)
    for name, value in part.items():
        current = live.get(name)
        if isinstance(value, dict) and isinstance(current, dict):
            merged[name] = _merged(current, value)
        else:
            merged[name] = value
    return merged


def _unchanged(sent: Object, live: Object) -> Object:
    """Return the part of a sent map that the live map lacks or has with equal values."""
    part: Object = {}
    for name, value in sent.items():
        current = live.get(name)
        if name not in live or value == current:
            part[name] = value
        elif name == "conditions":
            items = {item.get("type"): item for item in current or ()}
            part[name] = [item for item in value if item.items() <= items.get(item["type"], item).items()]
        elif isinstance(value, dict) and isinstance(current, dict):
            part[name] = _unchanged(value, current)
    return part
