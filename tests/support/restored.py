"""An object as a backup tool such as Velero creates it again."""

from __future__ import annotations

import copy

from kubefoundry_sdk._api.kinds import Object

DROPPED = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "selfLink",
)


def as_restored(obj: Object) -> Object:
    """Return the object without status, owners and the metadata that the API server sets."""
    restored = copy.deepcopy(obj)
    restored.pop("status", None)
    for name in DROPPED:
        restored["metadata"].pop(name, None)
    return restored
