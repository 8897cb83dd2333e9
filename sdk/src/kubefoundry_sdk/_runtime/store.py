"""Stores the known objects of a kind. The watch and the responses to our own writes fill it, and reconciles read it.

Objects are kept as deflated JSON and parsed on every read. That takes a tenth of the memory of dicts, and each reader
gets its own copy. The newest resource version wins, so a late answer never overwrites a newer event.

The memory of each namespace is bounded (`memory_quota`). If there is no room for a new state, the store keeps the
earlier state of the object, or leaves the object out.
"""

from __future__ import annotations

import asyncio
import json
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.managed_fields import compact
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.skipped import skipped
from kubefoundry_sdk._runtime.altered_status import AlteredStatuses
from kubefoundry_sdk._runtime.memory_quota import OVERHEAD, MemoryQuota

log = logging.getLogger(__name__)

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped kinds) and name."""

Subscriber = Callable[[Key, Object | None], None]
"""Called after a change with the object as it is now, None if it is gone. Must be quick. An exception is logged: the
object is stored anyway, and the other subscribers are called."""

WINDOW: Final = -12
"""Bits of deflate's window, without a header: 4 KiB cover an object's repetitions with little set-up for each (12 µs
to deflate 2.6 kB to 0.8, 4 µs to inflate it; 57 µs with zlib's default of 15 bits)."""

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False)
"""Encodes objects that were decoded from JSON and have no cycles. `json.dumps` would create an encoder for each."""

TOMBSTONES: Final = 1024
"""Deletions to remember, so that the late answer to a write does not bring the object back."""


def key_of(obj: Object) -> Key:
    """Return namespace and name of an object; the namespace is empty for cluster-scoped kinds."""
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]


def version_of(obj: Object) -> int:
    """Return the resource version as a number, comparable within a kind.

    This is guaranteed from Kubernetes 1.35 on, and true before.
    """
    return int(obj["metadata"]["resourceVersion"])


@dataclass(frozen=True, slots=True)
class Arrived:
    """An object of a list that is not complete yet, as it will be stored."""

    key: Key
    version: int
    raw: bytes


class Store:
    """Keeps the objects of a kind, deflated, and reports their changes.

    Args:
        managers: The managers whose owned fields are kept (`managed_fields.compact`).
        content_owners: Whether the others' fields outside of metadata and status are kept, too.
        content_only: Whether a change is not reported that leaves all kept parts equal except the resource version
            and the times of the others' writes, such as the release of a field that has another owner. `get` still
            returns the newest resource version.
        trim: Returns the object without the parts that nobody reads, or None to leave the object out. If it drops the
            resource version, changes of dropped parts only are not reported. With `content_only`, it keeps metadata.
        index: Returns the value under which `indexed` finds an object, None to leave it out.
        room: Bounds the memory of the objects, by namespace.
    """

    def __init__(
        self,
        *,
        managers: frozenset[str] = frozenset(),
        content_owners: bool = False,
        content_only: bool = False,
        trim: Callable[[Object], Object | None] | None = None,
        index: Callable[[Object], str | None] | None = None,
        room: MemoryQuota | None = None,
    ) -> None:
        self.room = room or MemoryQuota()
        self.left_out: Callable[[Object], None] | None = None
        """Called with the first object of a namespace for which there is no room."""
        self.altered = AlteredStatuses()
        """The status writes that admission changed (`status.write`)."""
        self._awaited: set[Key] = set()
        self._full: set[str] = set()
        self._managers = managers
        self._content_owners = content_owners
        self._content_only = content_only
        self._trim = trim
        self._index = index
        self._indexed: dict[str, tuple[str, set[Key]]] = {}
        self._entries: dict[Key, tuple[str, set[Key]]] = {}
        """The index entry of each object, so that a change need not parse the old object. Entries are shared with
        `_indexed`, so each exists once, however many objects have it."""
        self._objects: dict[Key, tuple[int, bytes]] = {}
        self._deleted: dict[Key, int] = {}
        self._before = -1
        """The newest version that was known when the listing began."""
        self._subscribers: list[Subscriber] = []
        self.synced = asyncio.Event()
        """Set once a whole listing has been stored; cleared when the kind is no longer served."""

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call the subscriber after each change, with the key and the object; None if the object is gone."""
        self._subscribers.append(subscriber)

    def report_next(self, key: Key) -> None:
        """Report the next version of the object in any case, because a write with the stored one has conflicted."""
        if key in self._objects:
            self._awaited.add(key)

    def get(self, key: Key) -> Object | None:
        """Return a copy of the object, which the caller may change.

        If admission changed the last status that `status.write` has sent, the copy has that status as it was sent.
        """
        live = self.stored(key)
        return live and self.altered.as_sent(key, live)

    def stored(self, key: Key) -> Object | None:
        """Return a copy of the object as the API server has stored it, even if admission changed our status."""
        entry = self._objects.get(key)
        return self._read(*entry) if entry else None

    def state(self, key: Key) -> object:
        """Return a value that is equal as long as `get` returns the same object, None while there is none."""
        return self._objects.get(key)

    def keys(self) -> list[Key]:
        """Return the keys of all objects."""
        return list(self._objects)

    def objects(self) -> Iterator[Object]:
        """Yield copies of all objects."""
        for entry in list(self._objects.values()):
            yield self._read(*entry)

    def __len__(self) -> int:
        return len(self._objects)

    def indexed(self, value: str, *, namespace: str | None) -> list[Object]:
        """Return copies of the objects with that index value, in the order of their names.

        Args:
            value: The index value.
            namespace: The namespace of the objects. An object of another namespace may claim any owner, so pass
                None, all namespaces, only where no tenant writes the value.
        """
        keys = sorted(self.indexed_keys(value, namespace=namespace))
        return [obj for key in keys if (obj := self.get(key))]

    def indexed_keys(self, value: str, *, namespace: str | None) -> list[Key]:
        """Return the keys that `indexed` finds, in no order."""
        _, keys = self._indexed.get(value, ("", ()))
        return [key for key in keys if namespace is None or key[0] == namespace]

    def put(self, obj: Object) -> None:
        """Store the object unless a newer state is known."""
        key, version = key_of(obj), version_of(obj)
        entry = self._objects.get(key)
        if (entry and entry[0] >= version) or self._deleted.get(key, -1) >= version:
            return
        self._keep(key, version, obj)

    def _keep(self, key: Key, version: int, obj: Object) -> None:
        kept = self._kept(obj)
        if kept is None:
            if key in self._objects:
                self._forget(key, version)
            return
        raw = self._raw(kept)
        if self._fits(key, raw, self.room, obj):
            self._set(key, version, raw, kept)

    def _kept(self, obj: Object) -> Object | None:
        # Trim first, because most objects of other components lose their managedFields.
        kept = self._trim(obj) if self._trim else obj
        if kept is not None and "managedFields" in (meta := kept.get("metadata") or {}):
            meta["managedFields"] = compact(
                meta["managedFields"],
                self._managers,
                content=self._content_owners,
                times=not self._content_only,
            )
        return kept

    def _raw(self, kept: Object) -> bytes:
        if self._content_only:
            metadata = {name: value for name, value in kept["metadata"].items() if name != "resourceVersion"}
            kept = {**kept, "metadata": metadata}
        return _deflated(kept)

    def _read(self, version: int, raw: bytes) -> Object:
        obj = _inflated(raw)
        if self._content_only:
            obj["metadata"]["resourceVersion"] = str(version)
        return obj

    def _set(self, key: Key, version: int, raw: bytes, kept: Object) -> None:
        before, is_awaited = self._objects.get(key), key in self._awaited
        self._awaited.discard(key)
        if before and before[1] == raw:
            # Nothing that is kept has changed; the kept part has no resource version.
            self._objects[key] = (version, raw)
            if is_awaited:
                self._notify(key, kept)
            return
        value = self._index(kept) if self._index else None
        self._unindex(key)
        if value:
            entry = self._entries[key] = self._indexed.setdefault(value, (value, set()))
            entry[1].add(key)
        self._objects[key] = (version, raw)
        self.room.change(key[0], _size(raw) - _size(before and before[1]))
        self._notify(key, kept)

    @property
    def incomplete(self) -> bool:
        """Whether objects were left out since the last complete list. They are seen when they are listed again."""
        return bool(self._full)

    def is_incomplete(self, namespace: str) -> bool:
        """Check whether objects of the namespace were left out since the last complete list."""
        return namespace in self._full

    def arriving(self) -> Callable[[Object], Arrived | None]:
        """Return a function for one listing that reduces each object as it arrives to what `replace` will store.

        It keeps within the namespace's room, so that a list of many pages never takes more memory than the store. It
        returns None for an object that is left out.
        """
        room = self.room.copy()
        self._full.clear()
        self._before = max(
            (*(version for version, _ in self._objects.values()), *self._deleted.values()), default=-1
        )

        def reduced(obj: Object) -> Arrived | None:
            key, version = key_of(obj), version_of(obj)
            before = self._objects.get(key)
            try:
                kept = self._kept(obj)
                if kept is None:
                    return None
                raw = self._raw(kept)
                if self._fits(key, raw, room, obj):
                    room.change(key[0], _size(raw) - _size(before and before[1]))
                    return Arrived(key, version, raw)
            except Exception as error:
                skipped(obj, error)
            return before and Arrived(key, *before)

        return reduced

    def _fits(self, key: Key, raw: bytes, room: MemoryQuota, obj: Object) -> bool:
        before = self._objects.get(key)
        growth = _size(raw) - _size(before and before[1])
        if growth <= 0 or growth <= room.left(key[0]):
            return True
        if key[0] not in self._full:
            self._full.add(key[0])
            with logs.about(*key):
                log.error(
                    "this object and maybe more of its kind are not read: there are too many or too large ones in "
                    "the namespace; delete some",
                    extra=logs.values(mebibytes=round(room.taken(key[0]) / 2**20)),
                )
            if self.left_out:
                self.left_out(obj)
        return False

    def remove(self, obj: Object) -> None:
        """Forget an object that was deleted at its resource version."""
        key, version = key_of(obj), version_of(obj)
        if self._objects.get(key, (-1,))[0] <= version:
            self._forget(key, version)

    def replace(
        self, objects: Iterable[Object | Arrived], resource_version: str, *, rewound: bool = False
    ) -> None:
        """Store a complete list, and report as deleted the objects that are no longer in it.

        The list replaces all states with a version up to its own, even a newer version of the same object, or other
        content at the same version: the API server has then lost the state that we saw. Only responses to our own
        writes since the listing began are newer than the list. With `rewound`, the list replaces them, too.
        """
        until = int(resource_version)
        rewound = rewound or until < self._before
        self._before = -1
        listed = set()
        if rewound:
            self._deleted.clear()
        for obj in objects:
            try:
                if isinstance(obj, Arrived):
                    key, version = obj.key, obj.version
                else:
                    key, version = key_of(obj), version_of(obj)
                listed.add(key)
                newest = max(self._objects.get(key, (-1,))[0], self._deleted.get(key, -1))
                if newest < version or rewound or version <= newest <= until:
                    self._deleted.pop(key, None)
                    if not isinstance(obj, Arrived):
                        self._keep(key, version, obj)
                    elif self._objects.get(key) != (version, obj.raw):
                        self._set(key, version, obj.raw, self._read(version, obj.raw))
            except Exception as error:
                skipped(obj, error)
        for key in [key for key in self._objects if key not in listed]:
            if rewound or self._objects[key][0] <= until:
                self._forget(key, until)
        self.synced.set()

    def clear(self) -> None:
        """Forget everything: the kind is no longer served, or not in this version."""
        for key, (version, _) in list(self._objects.items()):
            self._forget(key, version)
        # Another version of the kind serves the same objects, at the same resource versions.
        self._deleted.clear()
        self.synced.clear()

    def _forget(self, key: Key, version: int) -> None:
        entry = self._objects.get(key)
        self.altered.forget(key)
        self._awaited.discard(key)
        self._deleted.pop(key, None)
        self._deleted[key] = version
        if len(self._deleted) > TOMBSTONES:
            del self._deleted[next(iter(self._deleted))]
        if entry:
            self._unindex(key)
            del self._objects[key]
            self.room.change(key[0], -_size(entry[1]))
            self._notify(key, None)

    def _unindex(self, key: Key) -> None:
        if entry := self._entries.pop(key, None):
            value, keys = entry
            keys.discard(key)
            if not keys:
                del self._indexed[value]

    def _notify(self, key: Key, obj: Object | None) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber(key, obj)
            except Exception:
                with logs.about(*key):
                    log.exception("internal error: a change of this object was not processed")


def size_of(obj: Object) -> int:
    """Return the bytes that an object takes in a store that keeps all of it."""
    return _size(_deflated(obj))


def _size(raw: bytes | None) -> int:
    return 0 if raw is None else len(raw) + OVERHEAD


def _deflated(obj: Object) -> bytes:
    stream = zlib.compressobj(level=1, wbits=WINDOW, memLevel=5)
    return stream.compress(_ENCODER.encode(obj).encode()) + stream.flush()


def _inflated(raw: bytes) -> Object:
    obj: Object = json.loads(zlib.decompress(raw, wbits=WINDOW))
    return obj
