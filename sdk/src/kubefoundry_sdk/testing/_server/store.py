"""The objects with their resource versions, and the history of changes from which watches are served."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from kubefoundry_sdk._api.kinds import Object

Storage = tuple[str, str]
"""Group and plural."""
Key = tuple[str, str]
"""Namespace and name; the namespace is empty for cluster-scoped objects."""


class Change(NamedTuple):
    """A change of an object.

    Attributes:
        version: The resource version.
        storage: Group and plural.
        type: The kind of change.
        new: The object after the change; after a deletion its last state.
        old: The object before the change, None if it was created.
    """

    version: int
    storage: Storage
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    new: Object
    old: Object | None


@dataclass(slots=True)
class Store:
    """All objects. Stored objects are never changed in place.

    Attributes:
        version: The newest resource version.
        oldest: The version before the first change of the history.
        listeners: Called after each change of a resource, in the order in which they were added.
    """

    version: int = 1
    oldest: int = 1
    listeners: dict[Storage, dict[Callable[[], None], None]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _objects: dict[Storage, dict[Key, Object]] = field(default_factory=dict)
    _history: dict[Storage, list[Change]] = field(default_factory=lambda: defaultdict(list))
    _untidy: dict[tuple[Storage, Key], frozenset[str]] = field(default_factory=dict)

    def get(self, storage: Storage, key: Key) -> Object | None:
        """Return an object, or None."""
        return self._objects.get(storage, {}).get(key)

    def all(self, storage: Storage) -> list[Object]:
        """Return the objects of a resource in the order of namespaces and names."""
        objects = self._objects.get(storage, {})
        return [objects[key] for key in sorted(objects)]

    def everything(self) -> list[tuple[Storage, Key, Object]]:
        """Return all objects with their places."""
        return [
            (storage, key, obj) for storage, objects in self._objects.items() for key, obj in objects.items()
        ]

    def untidy(self, storage: Storage, key: Key) -> frozenset[str]:
        """Return the fields of the metadata that etcd holds as empty values, which no answer shows.

        An apply of a custom resource stores them. The next write of any kind that does not state them drops them, so
        a request that changes nothing else is a write, too.
        """
        return self._untidy.get((storage, key), frozenset())

    def put(self, storage: Storage, key: Key, obj: Object, untidy: Collection[str] = ()) -> Object:
        """Store an object with the next resource version, and return it."""
        old = self.get(storage, key)
        self._untidy[storage, key] = frozenset(untidy)
        stored = self._versioned(obj)
        self._objects.setdefault(storage, {})[key] = stored
        self._changed(Change(self.version, storage, "MODIFIED" if old else "ADDED", stored, old))
        return stored

    def remove(self, storage: Storage, key: Key, last: Object) -> Object:
        """Remove an object, and return its last state."""
        old = self._objects[storage].pop(key)
        stored = self._versioned(last)
        self._changed(Change(self.version, storage, "DELETED", stored, old))
        return stored

    def since(self, version: int, storage: Storage) -> list[Change]:
        """Return the changes of a resource after a version."""
        changes = self._history[storage]
        return changes[bisect_right(changes, version, key=lambda change: change.version) :]

    def compact(self) -> None:
        """Forget the history, so that watches of older versions are refused (410)."""
        self.oldest = self.version
        self._history.clear()

    def _versioned(self, obj: Object) -> Object:
        self.version += 1
        return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}

    def _changed(self, change: Change) -> None:
        self._history[change.storage].append(change)
        for listener in list(self.listeners[change.storage]):
            listener()
