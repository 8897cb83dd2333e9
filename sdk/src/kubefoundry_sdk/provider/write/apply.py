"""Writing upstream objects: server-side apply, and what its refusals mean to the user (contract §4.14, errors)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, Literal

from kubefoundry_sdk.api import managed_fields, names
from kubefoundry_sdk.api.kinds import Kind, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError
from kubefoundry_sdk.provider.write import manifest
from kubefoundry_sdk.provider.write.helpers import Helpers, kind_of, mark, marked
from kubefoundry_sdk.provider.write.plan import Plan
from kubefoundry_sdk.runtime.store import Key, Store

PERMISSION: Final = 5.0
"""The same for a permission that is missing: it comes by itself when an API server that has just started has read
its roles, and when an administrator grants it."""

RETRY: Final = 300.0
"""Seconds after which a refused manifest is tried again though nothing has changed (contract §4, errors)."""

ABSENT: Final = "1"
"""A resource version that no object has: an apply with it creates, and conflicts with whatever is there already
(seen on Kubernetes 1.36; without it an apply merges into another's object where no field of both differs)."""

_POLICY: Final = "change the ModelDeployment or contact the owner of that policy"
_GRANT: Final = "grant the provider's ServiceAccount that permission"
_FORBIDDEN: Final = (
    ("admission webhook", _POLICY),
    ("AdmissionPolicy", _POLICY),
    ("exceeded quota", "request less or have the quota raised"),
    ("being terminated", "the namespace is being deleted"),
    (" cannot ", _GRANT),
)
"""What the words of a 403 tell, in this order: a policy may say anything in its own."""


class Refused(Exception):
    """The API server, its admission or its quota refused an object of ours; the text is for the user.

    retry: seconds after which it is worth another try though nothing has changed.
    """

    def __init__(self, message: str, retry: float = RETRY) -> None:
        super().__init__(message)
        self.retry = retry


class NameTaken(Exception):
    """An object of that name exists that is not ours. Of a kind that is followed by labels no event reports it."""


class Refusal:
    """Which manifest of an object was refused last, when and why: the same is not tried at every event."""

    def __init__(self) -> None:
        self._last: tuple[str, float, str] | None = None
        """Digest, moment from which another try is worth it, and text."""

    def standing(self, digest: str, now: float) -> tuple[str, float] | None:
        """The refusal of this very manifest and the seconds until it is worth another try."""
        last = self._last
        if last is None or last[0] != digest or now >= last[1]:
            return None
        return last[2], last[1] - now

    def remember(self, digest: str, now: float, refused: Refused) -> None:
        self._last = (digest, now + refused.retry, str(refused))

    def over(self) -> None:
        """Nothing is refused any more."""
        self._last = None


def digest(objects: list[Object]) -> str:
    """Tells one set of dressed manifests from another."""
    marks = [obj["metadata"]["annotations"][names.APPLIED_ANNOTATION] for obj in objects]
    return hashlib.sha256("\n".join(marks).encode()).hexdigest()


async def write(
    client: Client, kind: Kind, store: Store, known: Helpers, todo: Plan, *, manager: str
) -> bool:
    """Brings what a plan says has changed to the API server; whether the main object was made now.

    Helpers go first, because admission of the main object may ask for them. Where the main object exists already,
    fresh ones are made, it is tried by a dry run, and only then those change that it uses; a refusal leaves nothing
    changed. Raises Refused, NameTaken, or ApiError for what passes by itself.
    """
    exists = store.get(_key(todo.main)) is not None
    main_too = todo.main in todo.changed
    helpers = [obj for obj in todo.changed if obj is not todo.main]
    fresh = [obj for obj in helpers if obj in todo.fresh]
    try:
        for obj in fresh:
            await _store(client, kind_of(obj), known.store(obj), obj, manager=manager)
        if main_too and helpers and exists:
            await try_apply(client, kind, todo.main, manager=manager, exists=True)
        for obj in helpers:
            if obj not in fresh:
                await _store(client, kind_of(obj), known.store(obj), obj, manager=manager)
        if main_too:
            await _store(client, kind, store, todo.main, manager=manager)
    except Refused:
        await discard(client, known, todo)
        raise
    return main_too and not exists


async def try_replacement(client: Client, kind: Kind, known: Helpers, todo: Plan, *, manager: str) -> None:
    """Asks whether the main object would be taken as a new one, beside the one that is there.

    Helpers that are not there come first, because admission of the main object may ask for them; after a refusal
    the fresh ones go again. Raises as `write`.
    """
    try:
        for obj in todo.helpers:
            if known.live(obj) is None:
                await _store(client, kind_of(obj), known.store(obj), obj, manager=manager)
        await try_new(client, kind, todo.main, manager=manager)
    except Refused:
        await discard(client, known, todo)
        raise


async def discard(client: Client, known: Helpers, todo: Plan) -> None:
    """Deletes the fresh helpers of a plan that was refused."""
    for obj in todo.fresh:
        if (live := known.live(obj)) is not None:
            await remove(client, kind_of(obj), live)


async def put_back(client: Client, kind: Kind, store: Store, obj: Object, *, manager: str) -> None:
    """Applies an object again, over what someone has changed on it."""
    await _store(client, kind, store, obj, manager=manager)


async def last_writer(client: Client, kind: Kind, live: Object, paths: Sequence[str], *, manager: str) -> str:
    """Which other manager changed something at the paths: one read, for the message only."""
    meta = live["metadata"]
    try:
        # What the store keeps of managed fields is ours alone.
        fresh = await client.get(kind, meta["name"], meta.get("namespace"))
    except ApiError:
        return "an unknown field manager"
    return managed_fields.writer(fresh, paths, manager) or "an unknown field manager"


async def try_apply(client: Client, kind: Kind, obj: Object, *, manager: str, exists: bool) -> None:
    """An apply that stores nothing. Raises Refused, NameTaken, or ApiError for what passes by itself."""
    await _apply(client, kind, obj, manager=manager, exists=exists, dry_run=True)


async def try_new(client: Client, kind: Kind, main: Object, *, manager: str) -> None:
    """Asks the API server, without storing anything, whether it would take the object as a new one.

    Under a generated name, because the old object still has its own. Raises Refused.
    """
    meta = {key: value for key, value in main["metadata"].items() if key != "name"}
    probe = {**main, "metadata": {**meta, "generateName": f"{main['metadata']['name'][:20]}-"}}
    try:
        await client.create(kind, probe, manager=manager, dry_run=True)
    except ApiError as error:
        if error.rejected:
            raise Refused(refusal(kind, main["metadata"]["name"], error)) from error
        raise


async def prune(client: Client, known: Helpers, uid: str, keep: list[Object]) -> None:
    """Deletes helpers of this owner that are not among `keep`."""
    kept = marked(keep)
    for obj in known.of(uid):
        if mark(obj) not in kept and not obj["metadata"].get("deletionTimestamp"):
            await remove(client, kind_of(obj), obj)


async def remove_main(client: Client, kind: Kind, obj: Object) -> None:
    """As `remove`. What Kubernetes makes of an object of its own goes first: nothing else waits for the pods, and
    GPUs and a cache volume are free only when they are gone."""
    await remove(client, kind, obj, "Foreground" if kind.built_in else "Background")


async def remove(
    client: Client, kind: Kind, obj: Object, propagation: Literal["Background", "Foreground"] = "Background"
) -> None:
    """Deletes that very object; one that is gone already, or whose kind is, counts as deleted."""
    meta = obj["metadata"]
    try:
        await client.delete(
            kind, meta["name"], meta.get("namespace"), uid=meta["uid"], propagation=propagation
        )
    except ApiError as error:
        # A conflict: another object of that name is there now, so ours is gone.
        if not (error.not_found or error.conflict):
            raise


async def _store(client: Client, kind: Kind, store: Store, obj: Object, *, manager: str) -> None:
    """Applies the object: as a new one where the store knows none, else to the very one that it knows.

    Whose that one is, is asked here and not only before the turn's first request: another's may have come meanwhile.
    And it is that one as we know it: who has slept through a change decides again (a conflict).
    """
    namespace, name = _key(obj)
    owner = manifest.owner_uid(obj) or ""
    live = store.get((namespace, name))
    if live is None:
        try:
            store.put(await _apply(client, kind, obj, manager=manager, exists=False))
            return
        except NameTaken:
            # It may be ours, and have lost the labels that we watch by.
            live = await client.get(kind, name, namespace)
            if not manifest.made_for(live, owner):
                raise
    elif not manifest.made_for(live, owner):
        raise NameTaken(f"{kind.kind} '{name}'")
    known = {name: live["metadata"][name] for name in ("uid", "resourceVersion")}
    body = {**obj, "metadata": {**obj["metadata"], **known}}
    store.put(await _apply(client, kind, body, manager=manager, exists=True))


async def _apply(
    client: Client, kind: Kind, obj: Object, *, manager: str, exists: bool, dry_run: bool = False
) -> Object:
    """Force only where the object is known to be ours: upstream operators take fields over (sources §3.6)."""
    body = obj if exists else {**obj, "metadata": {**obj["metadata"], "resourceVersion": ABSENT}}
    try:
        return await client.apply(kind, body, manager=manager, force=exists, dry_run=dry_run)
    except ApiError as error:
        if error.conflict and not exists and kind.built_in and await _stands(client, kind, obj):
            raise NameTaken(f"{kind.kind} '{obj['metadata']['name']}'") from error
        if error.rejected:
            text = refusal(kind, obj["metadata"]["name"], error)
            raise Refused(text, PERMISSION if text.endswith(_GRANT) else RETRY) from error
        raise


def refusal(kind: Kind, name: str, error: ApiError) -> str:
    """What was refused, in the server's own words, and what to do (contract §4: 403 told apart)."""
    remedy = "change the ModelDeployment accordingly"
    if error.code == 403:
        remedy = next(
            (todo for mark, todo in _FORBIDDEN if mark in error.message),
            "change the ModelDeployment or contact the cluster's administrator",
        )
    return f"{kind.kind} '{name}' was refused: {error.message}; {remedy}"


def _key(obj: Object) -> Key:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


async def _stands(client: Client, kind: Kind, obj: Object) -> bool:
    """Whether there is an object of that name. A conflict may be a ResourceQuota's as well, and that passes."""
    namespace, name = _key(obj)
    try:
        await client.get_metadata(kind, name, namespace)
    except ApiError as error:
        if error.not_found:
            return False
        raise
    return True
