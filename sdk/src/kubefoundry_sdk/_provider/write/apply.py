"""Writes upstream objects: the order of the writes, and the dry runs before them (contract §4.19)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from kubefoundry_sdk._api import managed_fields, names
from kubefoundry_sdk._api.conditions import first_of
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider.write import manifest, reclaim
from kubefoundry_sdk._provider.write.admission import Admission, NotInForce, not_in_force
from kubefoundry_sdk._provider.write.helpers import Helpers, Mark, kind_of, mark, marked
from kubefoundry_sdk._provider.write.plan import Plan
from kubefoundry_sdk._runtime import server_side_apply
from kubefoundry_sdk._runtime.refusals import GRADUAL, Origin, Refused, policy_advice, refused
from kubefoundry_sdk._runtime.server_side_apply import NameTaken, delete
from kubefoundry_sdk._runtime.store import Store, key_of

GENERATED: Final = "[bcdfghjklmnpqrstvwxz2456789]{5}"
"""The suffix that the API server appends to a `generateName` (Kubernetes 1.36, apimachinery, pkg/util/rand)."""

ORIGIN: Final = Origin("ModelDeployment", "the provider's ServiceAccount")


def changed(obj: Object) -> Origin:
    """Return the origin of an object that others changed. Advice names that object instead of the ModelDeployment."""
    return replace(ORIGIN, kind=f"{obj['kind']} '{obj['metadata']['name']}'")


def digest(objects: list[Object]) -> str:
    """Return a digest of the objects to apply."""
    marks = [obj["metadata"]["annotations"][names.APPLIED_ANNOTATION] for obj in objects]
    return hashlib.sha256("\n".join(marks).encode()).hexdigest()


async def write(
    client: Client,
    kind: Kind,
    store: Store,
    stores: Helpers,
    write_plan: Plan,
    *,
    manager: str,
    admission: Admission,
) -> bool:
    """Apply the changes of a plan, and return whether this call created the main object.

    Helpers come first, because admission of the main object may require them. If the main object exists, create the
    fresh helpers, send the main object as a dry run, and only then change the helpers that it uses. So a refusal
    changes nothing that serves. After a refusal that may pass, the fresh helpers stay, because admission may not
    have seen them yet, and would see recreated ones even later.

    Args:
        client: The client.
        kind: The kind of the main object.
        store: The store of main objects.
        stores: The stores of helpers.
        write_plan: The plan.
        manager: The field manager.
        admission: Receives the objects as stored.

    Raises:
        Refused: The API server, its admission or a quota refused an object.
        NameTaken: An object of another owner has the name.
        ApiError: A transient error.
    """
    live = store.get(key_of(write_plan.main))
    writes_main = write_plan.main in write_plan.changed
    created = False
    helpers = [obj for obj in write_plan.changed if obj is not write_plan.main]
    fresh = [obj for obj in helpers if obj in write_plan.fresh]
    try:
        for obj in fresh:
            await _store(client, kind_of(obj), stores.store(obj), obj, manager=manager, admission=admission)
        if writes_main and helpers and live is not None:
            await try_apply(client, kind, write_plan.main, manager=manager, live=live)
        for obj in helpers:
            if obj not in fresh:
                target, origin = (client, kind_of(obj), stores.store(obj), obj), _origin(write_plan, obj)
                await _store(*target, manager=manager, admission=admission, origin=origin)
        if writes_main:
            target, origin = (client, kind, store, write_plan.main), _origin(write_plan, write_plan.main)
            created = await _store(*target, manager=manager, admission=admission, origin=origin)
    except Refused as refused:
        if not refused.may_pass:
            await discard(client, stores, write_plan)
        raise
    return created


def _origin(write_plan: Plan, obj: Object) -> Origin:
    return changed(obj) if any(obj is edited for edited, _ in write_plan.edited) else ORIGIN


async def try_replacement(
    client: Client, kind: Kind, stores: Helpers, write_plan: Plan, *, manager: str, admission: Admission
) -> None:
    """Try by a dry run whether the main object would be accepted as a new one, next to the existing one.

    Missing helpers are created first, because admission of the main object may require them; after a refusal the
    fresh ones are deleted again. Raises as `write`.
    """
    try:
        for obj in write_plan.helpers:
            if stores.live(obj) is None:
                await _store(
                    client, kind_of(obj), stores.store(obj), obj, manager=manager, admission=admission
                )
        await try_new(client, kind, write_plan.main, manager=manager)
    except Refused as refused:
        if not refused.may_pass:
            await discard(client, stores, write_plan)
        raise


async def check_name(client: Client, kind: Kind, main: Object) -> None:
    """Raise NameTaken if the kind is built-in and an object of another owner has the main object's name.

    Of a built-in kind we watch only our own objects, so the store does not show that object.
    """
    if not kind.built_in:
        return
    namespace, name = key_of(main)
    try:
        live = await client.get(kind, name, namespace)
    except ApiError as error:
        if error.not_found:
            return
        raise
    if not manifest.may_be_written(live, main):
        raise NameTaken(f"{kind.kind} '{name}'")


async def discard(client: Client, stores: Helpers, write_plan: Plan) -> None:
    """Delete the fresh helpers of a plan that was refused."""
    for obj in write_plan.fresh:
        if (live := stores.live(obj)) is not None:
            await delete(client, kind_of(obj), live)


async def revert(
    client: Client, kind: Kind, store: Store, obj: Object, *, manager: str, admission: Admission
) -> None:
    """Apply an object again, over the changes that someone has made to it."""
    await _store(client, kind, store, obj, manager=manager, admission=admission, origin=changed(obj))


async def preview(
    client: Client, kind: Kind, obj: Object, live: Object, *, manager: str, admission: Admission
) -> None:
    """Find out by a dry run what the API server would store for an object that exists. Raises as `write`."""
    body = server_side_apply.pinned(obj, live, exact=True)
    stored = await server_side_apply.update(
        client, kind, body, manager=manager, origin=changed(obj), dry_run=True
    )
    admission.note(obj, stored)


async def last_writer(client: Client, kind: Kind, live: Object, paths: Sequence[str], *, manager: str) -> str:
    """Read the object, and return the other manager that last changed a field at the paths, for a message."""
    meta = live["metadata"]
    try:
        # The store keeps no times of other managers' entries. Of a helper, it keeps only our own fields.
        fresh = await client.get(kind, meta["name"], meta.get("namespace"))
    except ApiError:
        return managed_fields.UNKNOWN
    return managed_fields.writer(fresh, paths, manager) or managed_fields.UNKNOWN


async def try_apply(client: Client, kind: Kind, obj: Object, *, manager: str, live: Object | None) -> None:
    """Send an apply that stores nothing. Raise Refused, NameTaken, or ApiError for transient errors.

    `live` is the object that exists, None if it would be created.
    """
    send = server_side_apply.create if live is None else server_side_apply.update
    body = obj if live is None else server_side_apply.acceptable(obj, live)
    await send(client, kind, body, manager=manager, origin=ORIGIN, dry_run=True)


async def try_new(client: Client, kind: Kind, main: Object, *, manager: str) -> None:
    """Try by a dry run whether the API server would accept the object as a new one.

    The object in the dry run has a generated name, because the old object still has the real name. Raises Refused.
    Its text has the real name, so it is the same at each attempt.
    """
    name = main["metadata"]["name"]
    meta = {key: value for key, value in main["metadata"].items() if key != "name"}
    probe = {**main, "metadata": {**meta, "generateName": f"{name[:20]}-"}}
    try:
        await client.create(kind, probe, manager=manager, dry_run=True)
    except ApiError as error:
        if error.rejected:
            error.message = re.sub(re.escape(f"{name[:20]}-") + GENERATED, name, error.message)
            raise refused(kind, name, error, ORIGIN) from error
        raise


async def prune(
    client: Client,
    stores: Helpers,
    namespace: str,
    uid: str,
    keep: list[Object],
    *,
    spared: Callable[[Object], bool],
) -> set[Mark]:
    """Delete helpers of this owner that are not among `keep`, and return those that were deleted.

    `spared` checks whether a helper is really another owner's.
    """
    kept, deleted = marked(keep), set()
    for obj in stores.of(namespace, uid):
        if mark(obj) not in kept and not obj["metadata"].get("deletionTimestamp") and not spared(obj):
            await delete(client, kind_of(obj), obj)
            deleted.add(mark(obj))
    return deleted


async def remove_main(
    client: Client, kind: Kind, obj: Object, *, ours: Callable[[Object], bool] | None = None
) -> None:
    """Delete the main object, as `delete`.

    Objects that Kubernetes creates for a built-in kind are deleted first: nothing else waits for the pods, and GPUs
    and a cache volume are free only once they are gone.
    """
    await delete(client, kind, obj, "Foreground" if kind.built_in else "Background", ours=ours)


async def _store(
    client: Client,
    kind: Kind,
    store: Store,
    obj: Object,
    *,
    manager: str,
    admission: Admission,
    origin: Origin = ORIGIN,
) -> bool:
    """Create the object if the store has none, else apply it to the very object in the store.

    Check the ownership again, because an object of another owner may have appeared since the reconcile's first check.
    The write carries the resourceVersion from the store. If that is stale, the API server reports a conflict, and the
    next reconcile decides again. Return whether the object was created.
    """
    namespace, name = key_of(obj)
    live = store.get((namespace, name))
    if live is None:
        try:
            stored = await server_side_apply.create(client, kind, obj, manager=manager, origin=ORIGIN)
            if lacking := await _store_response(client, kind, store, obj, stored, admission, new=True):
                raise _refusal(kind, name, lacking)
            return True
        except NameTaken:
            # The object may be ours, without the labels by which we watch it.
            live = await client.get(kind, name, namespace)
    if not (manifest.may_be_written(live, obj) or admission.recognizes(mark(obj), live)):
        raise NameTaken(f"{kind.kind} '{name}'", manager in managed_fields.managers(live))
    stored = await _update(client, kind, obj, live, manager=manager, origin=origin)
    await _store_response(client, kind, store, obj, stored, admission, new=False)
    if lacking := not_in_force(obj, live, stored):
        # Restore the earlier record. With the new one, another process would conclude that the edit serves. Send no
        # resourceVersion, because the upstream operator may have written its status already.
        body = reclaim.with_earlier_record(obj, live)
        if body["metadata"]["annotations"] != obj["metadata"]["annotations"]:
            body = server_side_apply.pinned(body, stored, exact=False)
            store.put(await server_side_apply.update(client, kind, body, manager=manager, origin=origin))
        raise _refusal(kind, name, lacking)
    return False


def _refusal(kind: Kind, name: str, lacking: NotInForce) -> Refused:
    """Return the error for an apply of which admission took a part away.

    The advice is to change the ModelDeployment, even if this apply reverts a change by somebody else: an edit of the
    object itself meets the same policy, and is reverted.
    """
    if lacking.kept:
        fault = f"the change of {first_of(lacking.kept)} was not stored: an admission webhook or policy reverts it"
        rest = ", and the rest of the edit is in force" if lacking.is_mixed else ""
    else:
        fault = f"without {first_of(lacking.removed)}: an admission webhook or policy removes it"
        rest = ""
    return Refused(
        f"{kind.kind} '{name}' was accepted, but {fault}{rest}; {policy_advice(ORIGIN)}",
        gradual=GRADUAL,
    )


async def _update(
    client: Client, kind: Kind, obj: Object, live: Object, *, manager: str, origin: Origin
) -> Object:
    """Apply the object over the live one, remove all fields that it drops, and return the object as stored."""

    async def apply(body: Object) -> Object:
        body = server_side_apply.pinned(body, live, exact=True)
        return await server_side_apply.update(client, kind, body, manager=manager, origin=origin)

    if reclaim.may_leave_fields(obj, live, manager):
        live = await apply(reclaim.with_earlier_record(obj, live))
        if (earlier := reclaim.reclaimed(obj, live)) is not None:
            live = await apply(earlier)
            if operations := reclaim.release_operations(live, manager):
                namespace, name = key_of(live)
                live = await client.json_patch(kind, name, namespace, operations, manager=manager)
    return await apply(obj)


async def _store_response(
    client: Client, kind: Kind, store: Store, obj: Object, stored: Object, admission: Admission, *, new: bool
) -> NotInForce | None:
    """Store the response to an apply, and return the values that admission removed.

    Raise Refused if the response lacks a mark of ours. `new`: whether the apply created the object. A new object
    without the labels that we watch is deleted again.
    """
    lacking = admission.note(obj, stored)
    missing = manifest.missing_marks(obj, stored, watched_by_labels=kind.built_in)
    is_unseen = any(mark.startswith("label ") for mark in missing)
    if not is_unseen:
        store.put(stored)
    elif new:
        await delete(client, kind, stored)
    if missing:
        raise Refused(
            f"{kind.kind} '{obj['metadata']['name']}' was accepted, but {', '.join(missing)} was not stored as sent: "
            f"an admission webhook or policy changes it; exempt objects with the label {names.MANAGED_BY_LABEL} "
            "from that"
        )
    return lacking
