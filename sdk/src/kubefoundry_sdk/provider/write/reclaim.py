"""Fields that a change drops and that stay, because our entry in `managedFields` lost them (contract §4.19).

An apply removes only what its manager owns. Whoever may edit an object may cut the entry; then a dropped field stays
and still serves. Applying what was applied before, with the live values, makes the fields ours again, so the next
apply removes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from kubefoundry_sdk.api import managed_fields
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.write import drift, manifest

_ABSENT: Final = object()


def may_leave_fields(obj: Object, live: Object, manager: str) -> bool:
    """Check whether an apply may leave a field that it drops.

    It may if the manager's entry does not name a dropped field itself. A part of a list or map that has one owner as
    a whole is not named either: without the schema it looks like an entry that was cut there.

    Args:
        obj: The object to apply, dressed.
        live: The live object.
        manager: The provider's field manager.
    """
    before = _recorded(live, obj["apiVersion"])
    if before is None:
        return False
    fields = managed_fields.owned(live, manager) or {}
    return not all(_owns(fields, place) for place in _left(before, obj, live))


def with_earlier_record(obj: Object, live: Object) -> Object:
    """Return the object with the record of the live one, so that the change is made again if this process ends."""
    record = {key: value for key, value in live["metadata"]["annotations"].items() if key in manifest.RECORD}
    meta = obj["metadata"]
    return {**obj, "metadata": {**meta, "annotations": meta["annotations"] | record}}


def reclaimed(obj: Object, stored: Object) -> Object | None:
    """Return what to apply before the object is applied again, None if all that it drops is gone.

    Args:
        obj: The object that was applied with the earlier record.
        stored: The API server's answer.
    """
    before = _recorded(stored, obj["apiVersion"])
    if before is None or next(_left(before, obj, stored), None) is None:
        return None
    earlier, meta = _with_values(before, stored), obj["metadata"]
    parts = {key: meta[key] | earlier["metadata"].get(key, {}) for key in ("labels", "annotations")}
    return with_earlier_record({**earlier, "metadata": {**meta, **parts}}, stored)


def _recorded(live: Object, api_version: str) -> Object | None:
    """Return what was applied last, None if that is unknown, or of another version."""
    record = manifest.applied(live)
    if record is None or record.manifest.get("apiVersion") != api_version:
        return None
    meta = {key: record.manifest["metadata"].get(key, {}) for key in ("labels", "annotations")}
    return {**record.manifest, "metadata": meta}


Place = tuple[str | dict[str, Any], ...]
"""Keys of `fieldsV1`, and the objects themselves for items of lists, because their keys depend on the schema."""


def _left(before: Any, desired: Any, live: Any, path: Place = ()) -> Iterator[Place]:
    """Yield the places of values that were applied, are not desired any more, and still exist.

    Lists of texts and numbers have one owner as a whole, so an apply replaces them.
    """
    if isinstance(before, dict) and isinstance(live, dict):
        others = desired if isinstance(desired, dict) else {}
        for key, value in before.items():
            if key in live:
                yield from _left(value, others.get(key, _ABSENT), live[key], (*path, f"f:{key}"))
    elif (
        isinstance(before, list) and isinstance(live, list) and any(isinstance(item, dict) for item in before)
    ):
        yield from _left_items(before, desired if isinstance(desired, list) else [], live, path)
    elif desired is _ABSENT:
        yield path


def _left_items(before: list[Any], desired: list[Any], live: list[Any], path: Place) -> Iterator[Place]:
    if drift.distinct_by(before, "name") and drift.distinct_by(live, "name"):
        named = {item["name"]: item for item in desired if isinstance(item, dict) and "name" in item}
        live_by_name = {item["name"]: item for item in live}
        for item in before:
            if (name := item["name"]) in live_by_name:
                yield from _left(item, named.get(name, _ABSENT), live_by_name[name], (*path, item))
        return
    for at, item in enumerate(before):
        if any(drift.holds(item, other) for other in desired):
            continue
        live_item = next((other for other in live if drift.holds(item, other)), _ABSENT)
        if live_item is not _ABSENT and isinstance(item, dict):
            successor = desired[at] if at < len(desired) and _are_alike(item, desired[at]) else _ABSENT
            yield from _left(item, successor, live_item, (*path, item))


def _are_alike(one: Any, other: Any) -> bool:
    """Check whether two items of a list share a text, such as `groupName`: then one is an edit of the other."""
    return (
        isinstance(one, dict)
        and isinstance(other, dict)
        and any(isinstance(value, str) and other.get(key) == value for key, value in one.items())
    )


def _owns(fields: managed_fields.Fields, place: Place) -> bool:
    """Check whether owned fields name the place itself; a map or list above it does not count."""
    below: Any = fields
    for step in place:
        below = below.get(step) if isinstance(step, str) else _item_fields(below, step)
        if below is None:
            return False
    return True


def _item_fields(fields: managed_fields.Fields, item: dict[str, Any]) -> Any:
    """Return the owned fields of an item of a list, None if there are none."""
    for key, below in fields.items():
        if not key.startswith("k:"):
            continue
        marks = json.loads(key[2:])
        # What was applied may leave out a key that has a default.
        if any(name in item for name in marks) and all(
            item.get(name, mark) == mark for name, mark in marks.items()
        ):
            return below
    return None


def _with_values(before: Any, live: Any) -> Any:
    """Return what was applied with the live values, so that applying it changes nothing but the owner."""
    if isinstance(before, dict) and isinstance(live, dict):
        return {key: _with_values(value, live[key]) for key, value in before.items() if key in live}
    if isinstance(before, list) and isinstance(live, list):
        if drift.distinct_by(before, "name") and drift.distinct_by(live, "name"):
            live_by_name = {item["name"]: item for item in live}
            return [
                _with_values(item, live_by_name[item["name"]])
                for item in before
                if item["name"] in live_by_name
            ]
        return before
    return live
