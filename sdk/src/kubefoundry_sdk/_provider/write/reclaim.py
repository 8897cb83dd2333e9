"""Removes dropped fields that an apply would leave, because our `managedFields` entry lost them (contract §4.19).

An apply removes only fields that its manager owns. A user who may edit an object may cut our entry; then a dropped
field stays and still serves. So apply the dropped fields once more with their live values. That makes the fields ours
again, and the next apply removes them. Meanwhile, the additions and changes of the edit stay. No value comes from the
record, because anybody may have written it.

After a reset of `managedFields`, the API server makes `before-first-apply` the owner of all existing fields. Nobody
applies under that name, so a dropped field would stay forever. So our fields are removed from its entry
(`release_operations`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kubefoundry_sdk._api import handover, managed_fields
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.untrusted import mapping, mappings
from kubefoundry_sdk._provider.write import drift, list_keys, manifest

_ABSENT: Final = object()

COMPARISONS: Final = 10_000
"""The most comparisons of values to match the items of a list without names, each item with each: a user who may edit
the object may write tens of thousands of items. A longer list counts as one value if it is dropped, and is left alone
otherwise."""


def may_leave_fields(obj: Object, live: Object, manager: str) -> bool:
    """Check whether an apply of the object may leave a field that it drops.

    This is possible after a reset, or if the manager's entry does not name a dropped field itself. An entry never
    names a part of an atomic list or map, and without the schema this looks like an entry that was cut.
    """
    before = _recorded(live, obj["apiVersion"])
    if before is None:
        return False
    if any(_is_of_a_reset(entry) for entry in live["metadata"].get("managedFields") or ()):
        # Do not look for these fields in an entry, because the store keeps only our own fields of a helper.
        return next(_dropped(before, obj, live), None) is not None
    owned = _Owned(managed_fields.owned(live, manager) or {})
    return not all(owned.names(place) for place in _dropped(before, obj, live))


def with_earlier_record(obj: Object, live: Object) -> Object:
    """Return the object with the live object's record, so that the change is repeated if this process ends."""
    record = {key: value for key, value in live["metadata"]["annotations"].items() if key in manifest.RECORD}
    meta = obj["metadata"]
    return {**obj, "metadata": {**meta, "annotations": meta["annotations"] | record}}


def reclaimed(obj: Object, stored: Object) -> Object | None:
    """Return the object that makes the dropped fields ours again, or None if all of them are gone.

    `stored` is the API server's answer to the apply of `obj` with the earlier record.
    """
    before = _recorded(stored, obj["apiVersion"])
    if before is None or next(_dropped(before, obj, stored), None) is None:
        return None
    return with_earlier_record(_with_dropped(before, obj, stored), stored)


def release_operations(stored: Object, manager: str) -> list[Object]:
    """Return JSON patch operations that remove the manager's fields from the entry that a reset has created.

    Empty if that entry has none of these fields, or does not exist. `stored` is the API server's answer to the
    manager's apply.
    """
    own = managed_fields.owned(stored, manager) or {}
    before = stored["metadata"].get("managedFields") or []
    entries = []
    for entry in before:
        left = entry.get("fieldsV1") or {}
        if _is_of_a_reset(entry) and (left := managed_fields.without(left, own)) == {}:
            continue
        entries.append({**entry, "fieldsV1": left})
    if entries == before:
        return []
    return [
        # The API server reports a conflict if the stored object has another resourceVersion.
        {
            "op": "replace",
            "path": "/metadata/resourceVersion",
            "value": stored["metadata"]["resourceVersion"],
        },
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
    ]


def _is_of_a_reset(entry: Object) -> bool:
    return entry.get("manager") == handover.RESET and not entry.get("subresource")


def _recorded(live: Object, api_version: str) -> Object | None:
    """Return the manifest of the last apply; None if it is unknown, or of another version."""
    record = manifest.applied(live)
    if record is None or record.manifest.get("apiVersion") != api_version:
        return None
    meta = {key: record.manifest["metadata"].get(key, {}) for key in ("labels", "annotations")}
    return {**record.manifest, "metadata": meta}


Place = tuple[str | dict[str, Any], ...]
"""Keys of `fieldsV1`, and the objects themselves for items of lists, because their keys depend on the schema."""


def _dropped(before: Any, desired: Any, live: Any, path: Place = ()) -> Iterator[Place]:
    """Yield the places of values that were applied, are not desired any more, and still exist.

    Lists of texts and numbers have one owner as a whole, so an apply replaces them.
    """
    if isinstance(before, dict) and isinstance(live, dict):
        others = mapping(desired)
        for key, value in before.items():
            if key in live:
                yield from _dropped(value, others.get(key, _ABSENT), live[key], (*path, f"f:{key}"))
    elif _are_items(before, desired, live):
        yield from _dropped_items(before, desired if isinstance(desired, list) else [], live, path)
    elif desired is _ABSENT:
        yield path


def _dropped_items(before: list[Any], desired: list[Any], live: list[Any], path: Place) -> Iterator[Place]:
    for item, live_item, index in _pairs(before, desired, live):
        yield from _dropped(item, _ABSENT if index is None else desired[index], live_item, (*path, item))


def _pairs(
    before: list[Any], desired: list[Any], live: list[Any]
) -> Iterator[tuple[Object, Object, int | None]]:
    """Yield each applied item that still exists, its live item, and the index of the desired one (None: dropped)."""
    if _have_names(before, live):
        yield from _pairs_by_name(before, desired, live)
    elif _comparisons(before, desired, live) <= COMPARISONS:
        yield from _pairs_by_content(before, desired, live)


def _have_names(before: list[Any], live: list[Any]) -> bool:
    return drift.distinct_by(before, "name") and drift.distinct_by(live, "name")


def _comparisons(before: list[Any], desired: list[Any], live: list[Any]) -> int:
    return (len(desired) + len(live)) * _size(before) + len(before) * _size(desired)


def _pairs_by_name(
    before: list[Any], desired: list[Any], live: list[Any]
) -> Iterator[tuple[Object, Object, int | None]]:
    places = {item["name"]: index for index, item in enumerate(desired) if "name" in mapping(item)}
    live_by_name = {item["name"]: item for item in live}
    for item in before:
        if (name := item["name"]) in live_by_name:
            yield item, live_by_name[name], places.get(name)


def _pairs_by_content(
    before: list[Any], desired: list[Any], live: list[Any]
) -> Iterator[tuple[Object, Object, int | None]]:
    """Yield the result of `_pairs`, without items that are still desired unchanged."""
    for index, item in enumerate(before):
        if not isinstance(item, dict) or any(drift.holds(item, other) for other in desired):
            continue
        live_item = next((other for other in live if drift.holds(item, other)), None)
        if live_item is not None:
            same = next((place for place, other in enumerate(desired) if drift.holds(other, live_item)), None)
            is_edited = same is None and index < len(desired) and _are_alike(item, desired[index])
            yield item, live_item, index if is_edited else same


def _size(value: Any) -> int:
    """Return the number of values in a value, itself included."""
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_size, below))


def _are_alike(first: Any, second: Any) -> bool:
    """Check whether two items of a list share a text, such as `groupName`: then one is an edit of the other."""
    return (
        isinstance(first, dict)
        and isinstance(second, dict)
        and any(isinstance(value, str) and second.get(key) == value for key, value in first.items())
    )


class _Owned:
    """The fields that a manager owns."""

    def __init__(self, fields: managed_fields.Fields) -> None:
        self._fields = fields
        self._items: dict[int, list_keys.Fields] = {}

    def names(self, place: Place) -> bool:
        """Check whether the fields name the place itself. An entry for a map or list above it does not count."""
        below: Any = self._fields
        for step in place:
            below = below.get(step) if isinstance(step, str) else self._items_of(below).of(step)
            if below is None:
                return False
        return True

    def _items_of(self, fields: managed_fields.Fields) -> list_keys.Fields:
        if id(fields) not in self._items:
            self._items[id(fields)] = list_keys.Fields(fields)
        return self._items[id(fields)]


def _with_dropped(before: Any, desired: Any, live: Any) -> Any:
    """Return the desired value and the dropped values that still exist, with their live values."""
    if isinstance(before, dict) and isinstance(live, dict):
        return _map_with_dropped(before, desired, live)
    if _are_items(before, desired, live):
        items = list(desired) if isinstance(desired, list) else []
        for item, live_item, index in _pairs(before, list(items), live):
            if index is not None:
                items[index] = _with_dropped(item, items[index], live_item)
            elif (left_item := _with_dropped(item, _ABSENT, live_item)) is not _ABSENT:
                items.append(left_item)
        return items or desired
    return live if desired is _ABSENT else desired


def _map_with_dropped(before: Object, desired: Any, live: Object) -> Any:
    if desired is not _ABSENT and not isinstance(desired, dict):
        return desired
    others = mapping(desired)
    left = {
        key: value
        for key, old_value in before.items()
        if key in live
        and (value := _with_dropped(old_value, others.get(key, _ABSENT), live[key])) is not _ABSENT
    }
    return {**others, **left} if left else desired


def _are_items(before: Any, desired: Any, live: Any) -> bool:
    """Check whether the values are lists of objects whose items are matched one by one.

    A dropped list is one value if that takes too many comparisons.
    """
    if not (isinstance(before, list) and isinstance(live, list) and mappings(before)):
        return False
    return (
        desired is not _ABSENT or _have_names(before, live) or _comparisons(before, [], live) <= COMPARISONS
    )
