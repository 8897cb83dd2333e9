"""The fields that a manager owns, read from `metadata.managedFields` (server-side apply, fieldsV1)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubefoundry_sdk._api import names, reasons
from kubefoundry_sdk._api.kinds import Object

Fields = Mapping[str, Any]
_Items = dict[tuple[str, ...], dict[tuple[Any, ...], Fields]]

_OF_TYPE: Final = re.compile(r'k:\{"type":"([A-Za-z]+)"\}')
"""The key of a condition as the API server writes it. JSON is parsed only for other texts, because each event has a
dozen keys."""

_IN_BRACKETS: Final = re.compile(r"\[[^]]*\]")

UNKNOWN: Final = "an unknown field manager"
"""The writer in messages if no entry names one."""

HAND_OVER: Final = frozenset({reasons.PROVIDER_COMPATIBLE, reasons.RESOURCE_CREATED})
"""Types of the conditions that carry a hand-over (contract §8)."""


def compact(
    managed: list[dict[str, Any]], own: frozenset[str], *, content: bool = False, times: bool = True
) -> list[dict[str, Any]]:
    """Return only the managed fields that are read later.

    Those are the fields of the managers in `own`, and the names of the others with their part of a hand-over and
    their finalizers, phase and engine. The whole list is more than half of an object's bytes.

    Args:
        managed: The object's `metadata.managedFields`.
        own: Managers whose fields are kept.
        content: Whether to keep the others' fields outside of metadata and status, too.
        times: Whether to keep the times of the others' status writes.
    """
    return [
        entry
        if entry.get("manager") in own and entry.get("operation") == "Apply"
        else _reduced(entry, content, times)
        for entry in managed
    ]


def _reduced(entry: Mapping[str, Any], content: bool, times: bool) -> dict[str, Any]:
    """Return the entry with the finalizers, the conditions of a hand-over, phase and engine as its only fields.

    With `content` it also keeps the fields outside of metadata and status.
    """
    whole, subresource = entry.get("fieldsV1") or {}, entry.get("subresource")
    # Only the time of a status write is read later (`status_written_at`).
    read = ["manager", "operation", "subresource", *(["time"] if times and subresource == "status" else [])]
    fields: dict[str, Any] = {}
    if "f:status" in whole and (
        status := _reduced_status(whole["f:status"] or {}, str(entry.get("manager")))
    ):
        fields["f:status"] = status
    if "f:metadata" in whole and (added := finalizers(whole)):
        fields["f:metadata"] = {"f:finalizers": added}
    if content and not subresource:
        read.append("apiVersion")
        fields |= _content(whole)
    reduced = {key: entry[key] for key in read if key in entry}
    return {**reduced, "fieldsV1": fields} if fields else reduced


def _content(fields: Fields) -> Fields:
    return {key: below for key, below in fields.items() if key not in ("f:metadata", "f:status")}


def _reduced_status(status: Fields, manager: str) -> dict[str, Any]:
    kept = {
        key: below
        for key, below in (status.get("f:conditions") or {}).items()
        if key.startswith("k:") and _type(key) in HAND_OVER
    }
    reduced: dict[str, Any] = {"f:conditions": kept} if kept else {}
    if "f:phase" in status and manager.endswith(names.provider_manager("")):
        reduced["f:phase"] = {}
    if "f:engine" in (status.get("f:provider") or {}):
        reduced["f:provider"] = {"f:engine": {}}
    return reduced


def finalizers(fields: Fields) -> Fields:
    """Return our finalizers among the owned fields of a whole object, by keys such as `v:"kubefoundry.ai/name"`."""
    owned: Fields = (fields.get("f:metadata") or {}).get("f:finalizers") or {}
    return {key: field for key, field in owned.items() if key.startswith(f'v:"{names.GROUP}/')}


def applied_at(obj: Object, manager: str) -> str | None:
    """Return when the manager last changed a field by an apply, in RFC 3339; None if it applied none.

    The API server writes all times in one form, in UTC and with a resolution of one second, so they compare as text.
    """
    return _latest(
        entry
        for entry in _entries(obj)
        if entry.get("manager") == manager
        and entry.get("operation") == "Apply"
        and not entry.get("subresource")
    )


def status_written_at(obj: Object) -> str | None:
    """Return when any manager last changed the status, in the form of `applied_at`; None if it is unknown."""
    return _latest(entry for entry in _entries(obj) if entry.get("subresource") == "status")


def _latest(entries: Iterator[dict[str, Any]]) -> str | None:
    return max((time for entry in entries if isinstance(time := entry.get("time"), str)), default=None)


def _entries(obj: Object) -> Sequence[dict[str, Any]]:
    return obj["metadata"].get("managedFields") or ()


def owned(obj: Object, manager: str, subresource: str = "") -> Fields | None:
    """Return the fields that `manager` applied, or None if it applied none."""
    for entry in _entries(obj):
        if (
            entry.get("manager") == manager
            and entry.get("operation") == "Apply"
            and entry.get("subresource", "") == subresource
        ):
            fields: Fields = entry.get("fieldsV1", {})
            return fields
    return None


def conditions(status: Fields) -> dict[str, Fields]:
    """Return the fields of each condition in the owned fields of a status, by the condition's type."""
    return {
        _type(key): fields for key, fields in status.get("f:conditions", {}).items() if key.startswith("k:")
    }


def condition_owners(obj: Object, type_: str) -> set[str]:
    """Return all managers that own a part of the condition, by an apply or an update."""
    return {
        entry.get("manager", "")
        for entry in _entries(obj)
        if type_ in conditions((entry.get("fieldsV1") or {}).get("f:status") or {})
    }


def owners(obj: Object, *path: str) -> set[str]:
    """Return all managers that own the field at the path, by an apply or an update."""
    return {entry.get("manager", "") for entry in _entries(obj) if _owns_path(entry.get("fieldsV1"), path)}


def _owns_path(fields: Any, path: Sequence[str]) -> bool:
    for name in path:
        if f"f:{name}" not in (fields or {}):
            return False
        fields = fields[f"f:{name}"]
    return True


def _type(key: str) -> str:
    """Return the type of the condition that a key such as `k:{"type":"Ready"}` names."""
    plain = _OF_TYPE.fullmatch(key)
    return plain[1] if plain else str(json.loads(key[2:]).get("type"))


def managers(obj: Object, subresource: str = "") -> set[str]:
    """Return all managers that applied a field of the subresource."""
    return {
        entry.get("manager", "")
        for entry in _entries(obj)
        if entry.get("operation") == "Apply" and entry.get("subresource", "") == subresource
    }


def project(value: Any, fields: Fields) -> Any:
    """Return the part of `value` that `fields` names: the fields that the manager last applied, with today's values.

    Items of a list-map come in the order of the live list; an atomic list or map is one leaf.
    """
    if not fields:  # a leaf, as nearly all are
        return value
    if isinstance(value, dict):
        below = {key[2:]: sub for key, sub in fields.items() if key.startswith("f:")}
        return (
            {name: project(value[name], sub) for name, sub in below.items() if name in value}
            if below
            else value
        )
    if isinstance(value, list) and any(key.startswith("k:") for key in fields):
        return list(_project_items(value, fields))
    return value


def covers(fields: Fields, applied: Any) -> bool:
    """Check whether `fields` names every field of an applied value. An atomic list or map is one leaf."""
    if not fields:
        return True
    if isinstance(applied, dict):
        return not any(key.startswith("f:") for key in fields) or all(
            f"f:{name}" in fields and covers(fields[f"f:{name}"], part) for name, part in applied.items()
        )
    if isinstance(applied, list) and (items := _items(fields)):
        return all(any(covers(sub, item) for sub in _of_item(items, item)) for item in applied)
    return True


def fields_of(status: Mapping[str, Any]) -> Fields:
    """Return the owned fields of an applied status."""
    fields: dict[str, Any] = {}
    for name, value in status.items():
        if name == "conditions":
            items = {f'k:{{"type":"{item["type"]}"}}': {".": {}, **fields_of(item)} for item in value}
            fields[f"f:{name}"] = items
        else:
            fields[f"f:{name}"] = fields_of(value) if isinstance(value, dict) else {}
    return fields


def _project_items(items: list[Any], fields: Fields) -> Iterator[Any]:
    owned = _items(fields)
    for item in items:
        for sub in _of_item(owned, item):
            yield project(item, sub)


def _items(fields: Fields) -> _Items:
    """Return the fields of the items of a list-map, by the names and the values of their keys."""
    owned: _Items = {}
    for key, sub in fields.items():
        if key.startswith("k:"):
            mark = {"type": plain[1]} if (plain := _OF_TYPE.fullmatch(key)) else json.loads(key[2:])
            owned.setdefault(tuple(mark), {})[tuple(mark.values())] = sub
    return owned


def _of_item(owned: _Items, item: Any) -> Iterator[Fields]:
    if isinstance(item, dict):
        for keys, subs in owned.items():
            if (identity := tuple(item.get(key) for key in keys)) in subs:
                yield subs[identity]


def without(fields: Fields, others: Fields) -> dict[str, Any]:
    """Return the fields that `others` does not have. A list or map that `others` has as a whole is left out.

    The existence (`.`) of a map that `others` has is left out, too. Otherwise the API server would keep the map as
    null once it is empty, which no CRD accepts for a map.
    """
    left = {}
    for key, below in fields.items():
        if key not in others:
            left[key] = below
        elif others[key] and below and (rest := without(below, others[key])).keys() - {"."}:
            left[key] = rest
    return left


def writer(obj: Object, paths: Sequence[str], own: str) -> str | None:
    """Return the manager other than `own` that owns a field at one of the paths, the latest if there are several.

    Return None if no manager owns such a field, because removing a field leaves no trace. In a path such as
    `spec.groups[a].image`, items of a list count as equal.
    """
    patterns = set(map(pattern, paths))
    parents = {parent for path in patterns for parent in _parents(path)}
    entries = [
        entry
        for entry in _entries(obj)
        if entry.get("manager") != own
        and not entry.get("subresource")
        and _owns(entry.get("fieldsV1") or {}, patterns, parents)
    ]
    latest = max(entries, key=lambda entry: entry.get("time") or "", default=None)
    return str(latest.get("manager")) if latest else None


def _owns(fields: Fields, patterns: set[str], parents: set[str]) -> bool:
    return any(leaf in parents or not patterns.isdisjoint(_parents(leaf)) for leaf in _leaves(fields))


def pattern(path: str) -> str:
    """Return the path with every index or name in brackets replaced by `[*]`."""
    return _IN_BRACKETS.sub("[*]", path)


def _leaves(fields: Fields, prefix: str = "") -> Iterator[str]:
    for key, sub in fields.items():
        if key == ".":
            continue
        path = f"{prefix}.{key[2:]}" if key.startswith("f:") else f"{prefix}[*]"
        if any(name != "." for name in sub):
            yield from _leaves(sub, path)
        else:
            yield path.removeprefix(".")


def _parents(path: str) -> Iterator[str]:
    """Yield the path, and every place that contains it."""
    yield path
    for at, mark in enumerate(path):
        if mark in ".[":
            yield path[:at]
