"""Garbage collection: deletes objects whose owners are gone, by the owners' uids."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk.testing._server.store import Key, Storage, Store

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
OF_POLICIES: Final = (FOREGROUND, ORPHAN)


def collect(store: Store, now: str) -> None:
    """Delete and release objects until nothing is left to do. Unlike the real collector, it needs no time."""
    has_changed = True
    while has_changed:
        objects = store.everything()
        alive = {item["metadata"].get("uid") for _, _, item in objects}
        has_changed = any(_collected(store, *place, now, alive) for place in objects)


def _collected(
    store: Store, storage: Storage, key: Key, obj: Object, now: str, alive: Collection[str]
) -> bool:
    """Do the next step for an object, and tell whether there was one. `alive` has the uids of all objects."""
    if store.get(storage, key) is not obj:
        return False
    meta = obj["metadata"]
    held_by = (meta.get("finalizers") or ()) if meta.get("deletionTimestamp") else ()
    if ORPHAN in held_by:
        for place in _dependents(store, meta["uid"]):
            _disown(store, *place, meta["uid"])
        return _release(store, storage, key, obj, ORPHAN)
    if FOREGROUND in held_by:
        blocking = [place for place in _dependents(store, meta["uid"]) if _blocks(place[2], meta["uid"])]
        if not blocking:
            return _release(store, storage, key, obj, FOREGROUND)
        return any(_delete(store, *place, now) for place in blocking)
    owners = {owner["uid"] for owner in meta.get("ownerReferences") or ()}
    return bool(owners) and owners.isdisjoint(alive) and _delete(store, storage, key, obj, now)


def _dependents(store: Store, uid: str) -> list[tuple[Storage, Key, Object]]:
    return [
        place
        for place in store.everything()
        if any(owner["uid"] == uid for owner in place[2]["metadata"].get("ownerReferences") or ())
    ]


def _blocks(obj: Object, uid: str) -> bool:
    return any(
        owner["uid"] == uid and owner.get("blockOwnerDeletion")
        for owner in obj["metadata"]["ownerReferences"]
    )


def _delete(store: Store, storage: Storage, key: Key, obj: Object, now: str) -> bool:
    meta = obj["metadata"]
    if not meta.get("finalizers"):
        store.remove(storage, key, obj)
        return True
    if meta.get("deletionTimestamp"):
        return False
    store.put(storage, key, marked(obj, meta["finalizers"], now))
    return True


def marked(obj: Object, finalizers: list[str], now: str) -> Object:
    """Return the object as its deletion has begun."""
    meta = {**obj["metadata"], "finalizers": finalizers}
    if "deletionTimestamp" not in meta:
        meta |= {"deletionTimestamp": now, "deletionGracePeriodSeconds": 0}
        if "generation" in meta:
            meta["generation"] += 1
    return {**obj, "metadata": meta}


def _disown(store: Store, storage: Storage, key: Key, obj: Object, uid: str) -> None:
    owners = [owner for owner in obj["metadata"]["ownerReferences"] if owner["uid"] != uid]
    meta = {name: value for name, value in obj["metadata"].items() if name != "ownerReferences"}
    store.put(storage, key, {**obj, "metadata": {**meta, **({"ownerReferences": owners} if owners else {})}})


def _release(store: Store, storage: Storage, key: Key, obj: Object, finalizer: str) -> bool:
    """Remove a finalizer, and the object if it was the last one."""
    rest = [name for name in obj["metadata"]["finalizers"] if name != finalizer]
    meta = {name: value for name, value in obj["metadata"].items() if name != "finalizers"}
    released = {**obj, "metadata": {**meta, **({"finalizers": rest} if rest else {})}}
    if rest:
        store.put(storage, key, released)
    else:
        store.remove(storage, key, released)
    return True
