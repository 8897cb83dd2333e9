"""Values of our objects that admission changes: a mirror's images, a platform's defaults (contract §4.19).

Drift is a difference from the object that the API server stored for our apply. A value that admission changes is not
drift, because another apply would not change it back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from kubefoundry_sdk.api.conditions import first_of
from kubefoundry_sdk.api.equality import same
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.write import drift, manifest
from kubefoundry_sdk.provider.write.helpers import Mark, mark


class Admission:
    """For each object of a ModelDeployment: the manifest that was applied, and the values stored instead.

    It also keeps the uids of those objects. A uid is never used again, so an object that has lost its owner, labels
    and annotations is still recognized.
    """

    def __init__(self) -> None:
        self._stored: dict[Mark, tuple[str, dict[str, Any]]] = {}
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

    def note(self, applied: Object, stored: Object) -> None:
        """Remember the API server's response to an apply of a dressed manifest, or to a dry run of the apply.

        A missing owner reference is not remembered as a change by admission, because without it nobody deletes the
        object.
        """
        values = drift.values(manifest.content(applied), stored)
        owners = applied["metadata"].get("ownerReferences") or ()
        if not all(manifest.owned_by(stored, owner["uid"]) for owner in owners):
            values.pop("metadata.ownerReferences", None)
        self._stored[mark(applied)] = (_digest(recorded(applied)), values)

    def knows(self, applied: Object) -> bool:
        """Check whether the API server's response to this very dressed manifest is known."""
        digest, _ = self._stored.get(mark(applied), ("", {}))
        return digest == _digest(recorded(applied))

    def changed_by_others(
        self, obj_mark: Mark, applied: Object, differences: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """Return the paths at which the live object differs from the one that the API server stored for the manifest.

        Args:
            obj_mark: Kind and name of the object.
            applied: The manifest as recorded.
            differences: The live values that differ from the manifest, by path (`drift.values`).
        """
        if not differences:
            return ()
        digest, stored = self._stored.get(obj_mark, ("", {}))
        if digest != _digest(applied):
            return tuple(differences)
        return tuple(
            path for path, value in differences.items() if path not in stored or not same(stored[path], value)
        )

    def text(self, objects: Collection[Mark]) -> str:
        """Return the values of these objects that admission changed, for the user; empty if there are none."""
        named = []
        for (kind, name), (_, stored) in sorted(self._stored.items()):
            if stored and (kind, name) in objects:
                named.append(f"{first_of([*stored])} of {kind} '{name}'")
        if not named:
            return ""
        return f"; the cluster's admission changed {' and '.join(named)}, and this is not reverted"


def recorded(applied: Object) -> Object:
    """Return the manifest in an object's record. The object itself has live values at paths that others own."""
    record = manifest.applied(applied)
    return record.manifest if record else manifest.content(applied)


def _digest(content: Object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
