"""Writes the status fields that a component owns: by server-side apply, and only if something differs."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Collection, Mapping
from typing import Any

from kubefoundry_sdk._api import managed_fields
from kubefoundry_sdk._api.conditions import clip, stamp
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._runtime import admitted, wall_clock
from kubefoundry_sdk._runtime.altered_status import Sent
from kubefoundry_sdk._runtime.status_changes import changes
from kubefoundry_sdk._runtime.store import Store, key_of

log = logging.getLogger(__name__)


async def write(
    client: Client,
    store: Store,
    kind: Kind,
    live: Object,
    status: Mapping[str, Any],
    *,
    manager: str,
    shared: Collection[str] = (),
    named: bool = False,
) -> bool:
    """Make `status` the fields that `manager` owns in the status of `live`.

    Fields that it owned and that are not in `status` are released; an empty `status` releases all. If the rest of a
    released condition would be invalid, the whole condition is removed. Conditions come without transition times. The
    apply takes fields over (force) and carries the resource version of `live`.

    If admission changes a part of the status, `store.altered` remembers that, and an equal status is not sent again
    before its delay has passed. The queue of a `Process` reports it and reconciles again then.

    Args:
        client: The client.
        store: Receives the object as stored.
        kind: The kind of the object.
        live: The object.
        status: The desired status fields.
        manager: The field manager.
        shared: Status fields and types of conditions that another manager has taken over. If their values did not
            differ, both managers own them now. The release of these fields alone is not worth a write. The next
            write releases them.
        named: Whether `status.message` ends with what admission changes, as long as it does.

    Returns:
        Whether a request was sent.

    Raises:
        ApiError: A conflict if the object has changed (the next watch event then decides again), or another error.
    """
    logs.read(live)
    key, desired = key_of(live), prepared(live, status)
    timeless = {**desired, "conditions": status["conditions"]} if "conditions" in desired else desired
    # If admission changed the last one, `live` has that status as it was sent, so only the answer to a write tells.
    if not store.altered.text(key) and same(live, desired, manager, shared):
        return False
    digest, now = _digest(timeless), asyncio.get_running_loop().time()
    if store.altered.pending(key, digest, now):
        return False
    before = store.altered.text(key)
    noted = named and "message" in desired
    stored, text = await _send(client, store, kind, live, desired, before if noted else "", manager, shared)
    sent = Sent(stored["metadata"].get("uid", ""), manager, desired)
    try:
        if noted and text != before:
            stored, text = await _send(client, store, kind, stored, desired, text, manager, shared)
    finally:
        # Also after a conflict, because the first answer shows already what admission changes.
        if text and not before:
            log.warning("status changed by admission", extra=logs.values(what=text))
        store.altered.note(key, digest, now, text, sent)
    if changed := changes(live.get("status") or {}, stored.get("status") or {}):
        log.info("status changed", extra=logs.values(**changed))
    return True


def prepared(live: Object, status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status as it can be stored: with a message that is not too long, and with transition times."""
    desired = dict(status)
    if isinstance(desired.get("message"), str):
        desired["message"] = clip(desired["message"])
    if "conditions" in desired:
        current = live.get("status") or {}
        desired["conditions"] = stamp(desired["conditions"], current.get("conditions"), wall_clock.now())
    return desired


async def _send(
    client: Client,
    store: Store,
    kind: Kind,
    live: Object,
    desired: Object,
    note: str,
    manager: str,
    shared: Collection[str],
) -> tuple[Object, str]:
    """Apply the status with a note at the end of its message.

    Return the object as stored, and what admission changed, empty if it was stored as sent.
    """
    meta = live["metadata"]
    body: Object = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            **{name: meta[name] for name in ("name", "namespace", "uid", "resourceVersion") if name in meta},
        },
    }
    if desired:
        body["status"] = {**desired, "message": clip(f"{desired['message']}; {note}")} if note else desired
    try:
        stored = await client.apply_status(kind, body, manager=manager)
    except ApiError as error:
        released = owned_conditions(live, manager) - {item["type"] for item in desired.get("conditions", ())}
        if error.code != 422 or not released:
            raise
        # Somebody else owns a part of a condition that we release, and without our part it is invalid. The API server
        # would reject every further write, so remove the whole condition.
        live = await remove(client, store, kind, live, (), released, manager=manager)
        body["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        stored = await client.apply_status(kind, body, manager=manager)
    lost = admitted.changed(stored, body, manager, subresource="status", shared=shared)
    if note and _is_note_cut(stored, body["status"]["message"], desired["message"]):
        # Without the note the message may fit. Otherwise the cut of the note would be reported forever.
        lost = [name for name in lost if name != "status.message"]
    store.put(stored)
    return stored, admitted.describe(kind, meta["name"], lost, subresource="status") if lost else ""


def _is_note_cut(stored: Object, sent: str, desired: str) -> bool:
    """Check whether a message lost only a part of the note at its end."""
    message = str((stored.get("status") or {}).get("message", ""))
    return sent.startswith(message) and message.startswith(desired)


def _digest(desired: Mapping[str, Any]) -> str:
    """Return a digest of a status without transition times."""
    text = json.dumps(desired, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def owned_conditions(live: Object, manager: str) -> set[str]:
    """Return the types of the conditions that the manager owns, in full or in part."""
    fields = managed_fields.owned(live, manager, "status") or {}
    return set(managed_fields.conditions(fields.get("f:status", {})))


async def remove(
    client: Client,
    store: Store,
    kind: Kind,
    live: Object,
    fields: Collection[str],
    conditions: Collection[str],
    *,
    manager: str,
) -> Object:
    """Remove these status fields (`endpoint`, `provider/resourceName`) and the conditions of these types.

    It does not matter who wrote them.

    Returns:
        The object as stored.

    Raises:
        ApiError: A conflict if the object has changed meanwhile, or another error.
    """
    key, meta = key_of(live), live["metadata"]
    actual = store.stored(key) if store.altered.text(key) else None
    current = (actual or live).get("status") or {}
    operations: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]}
    ]
    operations += [{"op": "remove", "path": f"/status/{name}"} for name in fields if _has(current, name)]
    # From the end, because removing an item shifts those after it.
    for index, item in reversed(list(enumerate(current.get("conditions") or ()))):
        if item.get("type") in conditions:
            operations.append({"op": "remove", "path": f"/status/conditions/{index}"})
    if len(operations) == 1:
        return live
    try:
        stored = await client.json_patch(
            kind, meta["name"], meta.get("namespace"), operations, manager=manager, subresource="/status"
        )
    except ApiError as error:
        if error.outdated:
            raise ApiError(409, "Conflict", error.message) from error
        raise
    store.put(stored)
    return store.get(key) or stored


async def keep(
    client: Client, store: Store, kind: Kind, live: Object, *, manager: str, message: str | None = None
) -> bool:
    """Leave the status fields that `manager` owns as they are, and send them again if admission changed them.

    Args:
        client: See `write`, as the next three.
        store: The store.
        kind: The kind.
        live: The object as `store.get` returned it.
        manager: The field manager.
        message: The only field with another value.

    Returns:
        Whether a request was sent.

    Raises:
        ApiError: See `write`.
    """
    desired = owned(live, manager)
    if desired is None:
        return False
    if message is not None:
        desired["message"] = message
    return await write(client, store, kind, live, desired, manager=manager)


def owned(live: Object, manager: str) -> dict[str, Any] | None:
    """Return the part of the status that the manager owns, without transition times, None if it has applied none."""
    part = _owned(live, manager)
    for item in (part or {}).get("conditions", ()):
        item.pop("lastTransitionTime", None)
    return part


def _has(status: Object, path: str) -> bool:
    parent, _, name = path.rpartition("/")
    return name in (status.get(parent) or {} if parent else status)


def same(live: Object, desired: Mapping[str, Any], manager: str, shared: Collection[str] = ()) -> bool:
    """Check whether `desired` is the status that `manager` owns in the live object, apart from shared fields."""
    owned = _owned(live, manager)
    if owned is None:
        return not desired
    return _without(_canonical(owned), shared) == _without(_canonical(desired), shared)


def _owned(live: Object, manager: str) -> dict[str, Any] | None:
    """Return the part of the status that the manager owns, None if it has applied none."""
    fields = managed_fields.owned(live, manager, "status")
    if fields is None or "f:status" not in fields:
        return None if fields is None else {}
    owned: dict[str, Any] = managed_fields.project(live.get("status") or {}, fields["f:status"])
    return owned


def _without(status: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return a `_canonical` status without the fields and types of conditions in `names`."""
    kept = {name: value for name, value in status.items() if name not in names}
    if "conditions" in kept:
        kept["conditions"] = {type_: item for type_, item in kept["conditions"].items() if type_ not in names}
    return kept


def _canonical(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status with its conditions by type, because their order does not matter."""
    plain = dict(status)
    if isinstance(plain.get("conditions"), list):
        plain["conditions"] = {item.get("type"): item for item in plain["conditions"]}
    return plain
