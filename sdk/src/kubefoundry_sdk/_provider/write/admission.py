"""Values of our objects that admission changes: a mirror's images, a platform's defaults (contract §4.19).

Drift is a difference from the object that the API server stored for our apply. A value that admission changes is not
drift, because another apply would not change it back.

A value that admission removes, or an edit that it takes back, is not in force. That is a refusal (`not_in_force`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kubefoundry_sdk._api.conditions import first_of
from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider.write import drift, manifest
from kubefoundry_sdk._provider.write.helpers import Mark, mark


@dataclass(frozen=True, slots=True)
class NotInForce:
    """The values of an accepted apply that the API server did not store.

    Attributes:
        kept: Paths at which admission took an edit back: the object has its earlier value.
        removed: Paths at which the object has no value.
        is_mixed: Whether another part of the apply is in force, so that no version serves as a whole.
    """

    kept: tuple[str, ...]
    removed: tuple[str, ...]
    is_mixed: bool


def not_in_force(applied: Object, live: Object | None, stored: Object) -> NotInForce | None:
    """Return the values of an applied object that admission removed or took back, None if it did neither.

    `live` is the object before the apply, None if the apply created it. Metadata is not compared. Any other value
    instead of ours is a change by admission, which is left as it is.
    """
    # Not the record: it lacks the live values at paths that others own.
    sent = _stated(manifest.content(applied))
    refused = _content(drift.values(sent, stored))
    removed = _removed(refused)
    record = manifest.applied(live) if live else None
    if record is None or live is None:
        return NotInForce((), removed, is_mixed=True) if removed else None
    before = drift.values(sent, live)
    edited = _content(drift.values(sent, record.manifest))
    kept = tuple(
        path for path in edited if path in refused and path in before and same(refused[path], before[path])
    )
    removed = tuple(path for path in removed if path not in kept)
    if not kept and not removed:
        return None
    dropped = _removed(_content(drift.values(_stated(record.manifest), sent)))
    gone = _removed(drift.values(record.manifest, stored))
    is_mixed = bool(removed or edited.keys() - set(kept) or set(dropped) & set(gone))
    return NotInForce(kept, removed, is_mixed)


def _stated(value: Any) -> Any:
    """Return the value without empty fields, which a kind in Go need not store: `false`, 0 and empty texts."""
    if isinstance(value, dict):
        return {key: _stated(item) for key, item in value.items() if item or isinstance(item, dict | list)}
    return [_stated(item) for item in value] if isinstance(value, list) else value


def _content(differences: Mapping[str, Any]) -> dict[str, Any]:
    return {path: value for path, value in differences.items() if not path.startswith("metadata")}


def _removed(differences: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(path for path, value in differences.items() if value in (None, [], {}))


class Admission:
    """For each object of a ModelDeployment: the manifest that was applied, and the values stored instead.

    It also keeps the uids of those objects. A uid is never used again, so an object that has lost its owner, labels
    and annotations is still recognized.
    """

    def __init__(self) -> None:
        self._stored: dict[Mark, tuple[str, dict[str, Any]]] = {}
        self._removed: dict[Mark, tuple[str, ...]] = {}
        self._uids: dict[Mark, str] = {}

    def remember(self, obj_mark: Mark, live: Object) -> None:
        """Remember an object that was just applied, or found as it was applied."""
        self._uids[obj_mark] = str(live["metadata"]["uid"])

    @property
    def marks(self) -> Collection[Mark]:
        """The objects that were ours."""
        return self._uids.keys()

    def remembers(self, obj_mark: Mark) -> bool:
        """Check whether an object of that kind and name was ours."""
        return obj_mark in self._uids

    def recognizes(self, obj_mark: Mark, live: Object) -> bool:
        """Check whether the live object of that kind and name is the very object that was ours."""
        return self._uids.get(obj_mark) == str(live["metadata"]["uid"])

    def note(self, applied: Object, stored: Object) -> NotInForce | None:
        """Remember the API server's response to an apply, or to a dry run of it.

        A missing owner reference is not remembered as a change by admission, because without it nobody deletes the
        object. Nor is a removed value, which is applied again.

        Returns:
            The values that admission removed, as `not_in_force` does for a new object.
        """
        values = drift.values(manifest.content(applied), stored)
        owners = applied["metadata"].get("ownerReferences") or ()
        if not all(manifest.has_owner_reference(stored, owner["uid"]) for owner in owners):
            values.pop("metadata.ownerReferences", None)
        lacking = not_in_force(applied, None, stored)
        removed = lacking.removed if lacking else ()
        if manifest.applied(stored) is None:
            removed = (*removed, manifest.RECORD_PATH)
        self._removed[mark(applied)] = removed
        changed = {path: value for path, value in values.items() if path not in removed}
        self._stored[mark(applied)] = (_digest(recorded(applied)), changed)
        return lacking

    def knows(self, applied: Object) -> bool:
        """Check whether the API server's response to this very object is known."""
        digest, _ = self._stored.get(mark(applied), ("", {}))
        return digest == _digest(recorded(applied))

    def changed_by_others(
        self, obj_mark: Mark, applied: Object, differences: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """Return the paths at which the live object differs from the one that the API server stored for the manifest.

        `differences` has the live values that differ from the manifest as recorded, by path (`drift.values`).
        """
        if not differences:
            return ()
        digest, stored = self._stored.get(obj_mark, ("", {}))
        if digest != _digest(applied):
            return tuple(differences)
        return tuple(
            path for path, value in differences.items() if path not in stored or not same(stored[path], value)
        )

    def without_removed(self, obj_mark: Mark, paths: Collection[str]) -> tuple[str, ...]:
        """Return the paths at which admission did not remove our value."""
        removed = self._removed.get(obj_mark, ())
        return tuple(path for path in paths if path not in removed)

    def text(self, objects: Collection[Mark]) -> str:
        """Return the values of these objects that admission changed, in one clause; empty if there are none."""
        named = []
        for (kind, name), (_, stored) in sorted(self._stored.items()):
            if stored and (kind, name) in objects:
                named.append(f"{first_of([*stored])} of {kind} '{name}'")
        if not named:
            return ""
        return f"the cluster's admission changed {' and '.join(named)}, and this is not reverted"


def recorded(applied: Object) -> Object:
    """Return the manifest in an object's record. The object itself has live values at paths that others own."""
    record = manifest.applied(applied)
    return record.manifest if record else manifest.content(applied)


def _digest(content: Object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
