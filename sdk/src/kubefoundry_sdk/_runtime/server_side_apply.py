"""Creates, updates and deletes our objects, and never changes objects of others. Writes use server-side apply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._api.owner_references import beside_controller
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._runtime.refusals import Origin, refused
from kubefoundry_sdk._runtime.store import key_of

ATTEMPTS: Final = 5
"""The most attempts in a row to delete an object that its operator keeps writing. After that, its events cause the
next attempt."""

ABSENT: Final = "1"
"""A resource version that no object has: an apply with it creates, and conflicts with any existing object (seen on
Kubernetes 1.36; without it an apply merges into another's object if the two share no differing field)."""


class NameTaken(Exception):
    """An object of that name exists and is not ours. If the kind is watched by labels, no event reports it.

    Attributes:
        written: Whether our field manager has applied it, which proves nothing: anybody may use that name.
    """

    def __init__(self, named: str, written: bool = False) -> None:
        super().__init__(named)
        self.written = written


async def create(
    client: Client, kind: Kind, obj: Object, *, manager: str, origin: Origin, dry_run: bool = False
) -> Object:
    """Apply the object as a new one, and return it as stored.

    Raises:
        Refused: The server rejects the object.
        NameTaken: An object of a built-in kind has the name. It may be ours, and have lost the labels that we watch.
        ApiError: A transient error.
    """
    body = {**obj, "metadata": {**obj["metadata"], "resourceVersion": ABSENT}}
    try:
        return await client.apply(kind, body, manager=manager, force=False, dry_run=dry_run)
    except ApiError as error:
        if error.conflict and kind.built_in and await _exists(client, kind, obj):
            raise NameTaken(f"{kind.kind} '{obj['metadata']['name']}'") from error
        if error.rejected:
            raise refused(kind, obj["metadata"]["name"], error, origin) from error
        raise


async def update(
    client: Client, kind: Kind, obj: Object, *, manager: str, origin: Origin, dry_run: bool = False
) -> Object:
    """Apply the object over an existing one of ours, and return it as stored.

    The apply takes back fields that others took over (sources §3.6).

    Raises:
        Refused: The server rejects the object.
        ApiError: Another error, which may be transient.
    """
    try:
        return await client.apply(kind, obj, manager=manager, force=True, dry_run=dry_run)
    except ApiError as error:
        if error.rejected:
            raise refused(kind, obj["metadata"]["name"], error, origin) from error
        raise


def pinned(obj: Object, live: Object, *, exact: bool) -> Object:
    """Return the object with the uid of the live one, so that the apply changes no other object of that name.

    With `exact`, the object also gets the resource version. An apply by a process with a stale state is then a
    conflict.
    """
    names = ("uid", "resourceVersion") if exact else ("uid",)
    obj = acceptable(obj, live)
    return {**obj, "metadata": {**obj["metadata"], **{name: live["metadata"][name] for name in names}}}


def acceptable(obj: Object, live: Object) -> Object:
    """Return the object with the owner references that the API server accepts over the live one."""
    meta = obj["metadata"]
    if not meta.get("ownerReferences"):
        return obj
    owners = beside_controller(meta["ownerReferences"], live["metadata"].get("ownerReferences"))
    return {**obj, "metadata": {**meta, "ownerReferences": owners}}


async def delete(
    client: Client,
    kind: Kind,
    obj: Object,
    propagation: Literal["Background", "Foreground"] = "Background",
    *,
    ours: Callable[[Object], bool] | None = None,
) -> None:
    """Delete the object with this uid. If it or its kind is gone, it counts as deleted.

    With `ours`, the object is deleted only in a state that `ours` accepts, because it may have been orphaned before
    the watch has delivered the event. If the object has changed, it is read and checked again.
    """
    namespace, name = key_of(obj)
    uid = obj["metadata"]["uid"]
    try:
        for _ in range(ATTEMPTS):
            version = obj["metadata"]["resourceVersion"] if ours else None
            try:
                await client.delete(
                    kind, name, namespace or None, uid=uid, version=version, propagation=propagation
                )
                return
            except ApiError as error:
                if not error.conflict:
                    raise
            if ours is None:
                # Another object has that name now, so ours is gone.
                return
            obj = await client.get(kind, name, namespace or None)
            if obj["metadata"]["uid"] != uid or obj["metadata"].get("deletionTimestamp") or not ours(obj):
                return
    except ApiError as error:
        if not error.not_found:
            raise


async def _exists(client: Client, kind: Kind, obj: Object) -> bool:
    """Check whether an object of that name exists. A conflict may also be a ResourceQuota's, which is transient."""
    namespace, name = key_of(obj)
    try:
        await client.get_metadata(kind, name, namespace)
    except ApiError as error:
        if error.not_found:
            return False
        raise
    return True
