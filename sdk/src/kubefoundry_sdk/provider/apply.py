"""Writing upstream objects: server-side apply, and what its refusals mean to the user (contract §4.14, errors)."""

from __future__ import annotations

import hashlib
from typing import Final

from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import CONFIG_MAPS, Kind, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError
from kubefoundry_sdk.provider import manifest
from kubefoundry_sdk.runtime.store import Key, Store

RETRY: Final = 300.0
"""Seconds after which a refused manifest is tried again though nothing has changed (contract §4, errors)."""


class Refused(Exception):
    """The API server, its admission or its quota refused an object of ours; the text is for the user."""


class NameTaken(Exception):
    """Somebody else's object of that name came to light while writing."""


class Refusals:
    """Which manifest of a key was refused, when and why: the same is not tried at every event."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[str, float, str]] = {}

    def standing(self, key: Key, digest: str, now: float) -> tuple[str, float] | None:
        """The refusal of this very manifest and the seconds until it is worth another try."""
        known = self._known.get(key)
        if known is None or known[0] != digest or now - known[1] >= RETRY:
            return None
        return known[2], RETRY - (now - known[1])

    def remember(self, key: Key, digest: str, now: float, message: str) -> None:
        self._known[key] = (digest, now, message)

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)


def digest(objects: list[Object]) -> str:
    """Tells one set of dressed manifests from another."""
    marks = [obj["metadata"]["annotations"][names.APPLIED_ANNOTATION] for obj in objects]
    return hashlib.sha256("\n".join(marks).encode()).hexdigest()


async def write(
    client: Client,
    kind: Kind,
    store: Store,
    helper_store: Store | None,
    main: Object,
    helpers: list[Object],
    *,
    manager: str,
) -> tuple[Object, bool]:
    """Brings main and helper objects to the API server where they differ from what was applied last.

    Helpers go first, because admission of the main object may ask for them; where they exist already, the main
    object is tried by a dry run before any of them changes. Helpers that are no longer rendered are pruned.
    Returns the live main object and whether it was made now. Raises Refused, NameTaken, or ApiError for what
    passes by itself.
    """
    live = store.get(_key(main))
    changed_main = live is None or manifest.differs(main, live)
    changed_helpers = [obj for obj in helpers if helper_store and _changed(helper_store, obj)]
    if changed_main and changed_helpers and live is not None:
        await _apply(client, kind, main, manager=manager, exists=True, dry_run=True)
    for obj in changed_helpers:
        assert helper_store is not None
        known = helper_store.get(_key(obj))
        helper_store.put(await _apply(client, CONFIG_MAPS, obj, manager=manager, exists=known is not None))
    if changed_main:
        made = await _apply(client, kind, main, manager=manager, exists=live is not None)
        store.put(made)
        return store.get(_key(main)) or made, live is None
    assert live is not None
    return live, False


async def prune(client: Client, helper_store: Store, uid: str, keep: list[Object]) -> None:
    """Deletes helpers of this owner that are not among `keep`."""
    kept = {_key(obj) for obj in keep}
    for obj in helper_store.indexed(uid):
        if _key(obj) not in kept and not obj["metadata"].get("deletionTimestamp"):
            await remove(client, CONFIG_MAPS, obj)


async def remove(client: Client, kind: Kind, obj: Object) -> None:
    """Deletes that very object; one that is gone already, or whose kind is, counts as deleted."""
    meta = obj["metadata"]
    try:
        await client.delete(kind, meta["name"], meta.get("namespace"), uid=meta["uid"])
    except ApiError as error:
        # A conflict: another object of that name stands there now, so ours is gone.
        if not (error.not_found or error.conflict):
            raise


async def _apply(
    client: Client, kind: Kind, obj: Object, *, manager: str, exists: bool, dry_run: bool = False
) -> Object:
    """Force only where the object is known to be ours: upstream operators take fields over (facts, KubeRay 1)."""
    try:
        return await client.apply(kind, obj, manager=manager, force=exists, dry_run=dry_run)
    except ApiError as error:
        if error.conflict and not exists:
            raise NameTaken(f"{kind.kind} '{obj['metadata']['name']}'") from error
        if error.rejected:
            raise Refused(refusal(kind, obj["metadata"]["name"], error)) from error
        raise


def refusal(kind: Kind, name: str, error: ApiError) -> str:
    """What was refused, in the server's own words, and what to do (contract §4: 403 told apart)."""
    what = f"{kind.kind} '{name}' was refused: {error.message}"
    if error.code != 403:
        return f"{what}; change the ModelDeployment accordingly"
    text = error.message
    if "exceeded quota" in text:
        return f"{what}; ask for less or have the quota raised"
    if "being terminated" in text:
        return f"{what}; the namespace is being deleted"
    if "admission webhook" in text or "denied the request" in text:
        return f"{what}; change the ModelDeployment or ask who runs that policy"
    return f"{what}; grant the shim's ServiceAccount that permission"


def _changed(store: Store, obj: Object) -> bool:
    live = store.get(_key(obj))
    return live is None or manifest.differs(obj, live)


def _key(obj: Object) -> Key:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]
