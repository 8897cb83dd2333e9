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


def reclaimed(obj: Object, live: Object, manager: str) -> Object | None:
    """Return what to apply before the object, so that the API server then removes all that it drops.

    Args:
        obj: The object to apply, dressed.
        live: The live object.
        manager: The provider's field manager.

    Returns:
        The fields that were applied to `live`, with their live values. None if the manager owns each of them that
        `obj` drops. A part of a list or map that has one owner as a whole counts as lost: without the schema it looks
        like an entry that was cut there, and then this apply changes nothing.
    """
    record = manifest.applied(live)
    if record is None or record.manifest.get("apiVersion") != obj["apiVersion"]:
        return None
    meta = {key: record.manifest["metadata"].get(key, {}) for key in ("labels", "annotations")}
    before, fields = {**record.manifest, "metadata": meta}, managed_fields.owned(live, manager) or {}
    if all(_owns(fields, path) for path in _left(before, obj, live)):
        return None
    earlier = _with_values(before, live)
    # The earlier record stays until the fields are gone: if this process ends in between, the change is made again.
    kept = {key: value for key, value in live["metadata"]["annotations"].items() if key in manifest.RECORD}
    annotations = obj["metadata"]["annotations"] | earlier["metadata"].get("annotations", {}) | kept
    labels = obj["metadata"]["labels"] | earlier["metadata"].get("labels", {})
    return {**earlier, "metadata": {**obj["metadata"], "labels": labels, "annotations": annotations}}


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
    for item in before:
        if any(drift.holds(item, other) for other in desired):
            continue
        held = next((other for other in live if drift.holds(item, other)), _ABSENT)
        if held is not _ABSENT and isinstance(item, dict):
            yield from _left(item, _ABSENT, held, (*path, item))


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
