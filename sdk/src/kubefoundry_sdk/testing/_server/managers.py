"""Field management: what an update or an apply does to the object and to `metadata.managedFields`.

A port of structured-merge-diff (merge.Updater) and of the managers around it in apimachinery (util/managedfields).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

from kubefoundry_sdk._api.equality import same
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk.testing._server import errors, field_sets, merging
from kubefoundry_sdk.testing._server.field_sets import Fields
from kubefoundry_sdk.testing._server.types import Type

Operation = Literal["Apply", "Update"]

BEFORE_FIRST_APPLY: Final = "before-first-apply"
ANCIENT: Final = "ancient-changes"
MOST_UPDATERS: Final = 10
"""Updaters that have an entry each; older ones share one."""

_STRIPPED: Final[Fields] = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        **{
            f"f:{name}": {}
            for name in (
                *("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName"),
                *("generation", "managedFields", "resourceVersion"),
            )
        },
    },
}
"""Fields that nobody owns."""


class Manager(NamedTuple):
    """What identifies an entry; an applier's entry is the same for every version."""

    name: str
    operation: Operation
    version: str = ""
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Owned:
    """The fields of a manager, the version that they are in, and the time of the last change."""

    fields: Fields
    version: str
    time: str | None


Managed = dict[Manager, Owned]


@dataclass(frozen=True, slots=True)
class FieldManager:
    """Tracks the fields of one kind, for one endpoint.

    Attributes:
        kind: The type of the objects.
        version: The group and version.
        ignored: Fields that the endpoint resets, so that nobody owns them through it.
        subresource: The name of the subresource, empty for the object itself.
        empty: What an object that does not exist consists of.
        empties_reset: Whether an empty list of entries resets the ownership, too, as for built-in kinds.
    """

    kind: Type
    version: str
    ignored: Fields
    subresource: str = ""
    empty: Object = field(default_factory=dict)
    empties_reset: bool = False

    def update(self, live: Object, new: Object, manager: str, now: str) -> Object:
        """Return the new object with its managedFields after a create, update or patch."""
        managed = self._managed_of_request(live, new)
        if not managed and (live.get("metadata") or {}).get("uid"):
            return _without_managed(new)
        if any(merging.check(_without_managed(new), self.kind, duplicates=True)):
            # Either validation refuses the object, or the wrong part is not of this endpoint, and ownership is lost.
            return _without_managed(new)
        managed = self._tracked(managed, _without_managed(live), _without_managed(new), manager, now)
        return _with_managed(new, managed)

    def apply(self, live: Object, applied: Object, manager: str, now: str, *, force: bool) -> Object:
        """Return the live object with an applied one merged into it. Raise Refused for conflicts."""
        self._check(applied)
        managed = decode(live)
        before = _without_managed(live)
        if problems := list(merging.check(before, self.kind, duplicates=True)):
            # Validation accepts some values that have no type here, such as a list for a time.
            raise errors.internal(f"failed to create typed live object: {problems[0]}")
        if not managed:
            managed = self._tracked(managed, self.empty, before, BEFORE_FIRST_APPLY, now)
        own = Manager(manager, "Apply", "", self.subresource)
        last = managed.get(own)
        merged = merging.merge(before, applied, self.kind)
        fields = field_sets.outside(merging.fields_of(applied, self.kind), self.ignored)
        managed[own] = Owned(fields, self.version, last.time if last else None)
        merged = self._pruned(merged, managed, last)
        managed, _ = self._compared(before, merged, managed, own, force=force)
        if own in managed:
            fields = field_sets.difference(managed[own].fields, _STRIPPED)
            managed[own] = replace(managed[own], fields=fields)
            managed = {manager: owned for manager, owned in managed.items() if owned.fields}
        if own in managed and not same(before, merged):
            managed[own] = replace(managed[own], time=now)
        return _with_managed(merged, managed)

    def _check(self, applied: Object) -> None:
        meta = applied.get("metadata") or {}
        if meta.get("managedFields") is not None:
            raise errors.bad_request("metadata.managedFields must be nil")
        if problems := list(merging.check(applied, self.kind)):
            group, _, version = self.version.rpartition("/")
            named = f"{meta.get('namespace', '')}/{meta.get('name', '')}; {group}/{version}, Kind={applied['kind']}"
            text = (
                problems[0]
                if len(problems) == 1
                else "errors:\n" + "\n".join(f"  {item}" for item in problems)
            )
            raise errors.internal(f"failed to create typed patch object ({named}): {text}")

    def _managed_of_request(self, live: Object, new: Object) -> Managed:
        """Return the entries to start from: the request's own, if it sets some."""
        if self.subresource:
            return decode(live)
        stated = (new.get("metadata") or {}).get("managedFields")
        if stated == [{}] or (stated == [] and self.empties_reset):
            return {}
        return decode(new) or decode(live)

    def _tracked(self, managed: Managed, live: Object, new: Object, manager: str, now: str) -> Managed:
        """Return the entries after an update by a manager (merge.Updater.Update)."""
        current = Manager("", "Update")
        managed, changes = self._compared(live, new, managed, current, force=True)
        taken = field_sets.union(changes.modified, changes.added)
        taken = field_sets.difference(field_sets.outside(taken, self.ignored), _STRIPPED)
        if taken:
            own = Manager(manager, "Update", self.version, self.subresource)
            before = managed[own].fields if own in managed else {}
            managed[own] = Owned(field_sets.union(taken, before), self.version, now)
        return _capped(managed)

    def _compared(
        self, live: Object, new: Object, managed: Managed, own: Manager, *, force: bool
    ) -> tuple[Managed, merging.Comparison]:
        """Take changed fields from all other managers (merge.Updater.update). Raise Refused for conflicts."""
        changes = merging.compare(live, new, self.kind)
        changes = merging.Comparison(
            *(
                field_sets.outside(part, self.ignored)
                for part in (changes.added, changes.modified, changes.removed)
            )
        )
        changed = field_sets.union(changes.modified, changes.added)
        conflicts: list[tuple[str, str]] = []
        rest: Managed = {}
        for manager, owned in managed.items():
            if manager == own:
                rest[manager] = owned
                continue
            common = field_sets.intersection(owned.fields, changed)
            conflicts += [
                (_named(manager, owned), field_sets.shown(path)) for path in field_sets.paths(common)
            ]
            fields = field_sets.difference(field_sets.difference(owned.fields, common), changes.removed)
            rest[manager] = replace(owned, fields=fields)
        if conflicts and not force:
            raise errors.owned_by_others(sorted(conflicts))
        return {manager: owned for manager, owned in rest.items() if owned.fields}, changes

    def _pruned(self, merged: Any, managed: Managed, last: Owned | None) -> Object:
        """Return the object without the fields that the manager applied before and no longer applies."""
        if last is None or not last.fields:
            return dict(merged)
        named = merging.with_named(last.fields, self.kind)
        pruned = merging.remove(merged, named, self.kind)
        everything: Fields = {}
        for owned in managed.values():
            everything = field_sets.union(everything, owned.fields)
        pruned = self._with_owned(merged, pruned, everything)
        there = merging.with_named(merging.fields_of(merged, self.kind), self.kind)
        kept = merging.with_named(merging.fields_of(pruned, self.kind), self.kind)
        dangling = field_sets.intersection(field_sets.difference(there, kept), named)
        return merging.remove(merged, dangling, self.kind) or {}

    def _with_owned(self, merged: Any, pruned: Any, owned: Fields) -> Any:
        there = merging.with_named(merging.fields_of(merged, self.kind), self.kind)
        kept = merging.with_named(merging.fields_of(pruned, self.kind), self.kind)
        kept = field_sets.union(kept, merging.with_named(owned, self.kind))
        return merging.remove(merged, field_sets.difference(there, kept), self.kind)


def decode(obj: Object) -> Managed:
    """Return the entries of an object by their managers."""
    found: Managed = {}
    for entry in (obj.get("metadata") or {}).get("managedFields") or ():
        operation: Operation = entry.get("operation", "Update")
        version = "" if operation == "Apply" else entry.get("apiVersion", "")
        manager = Manager(entry.get("manager", ""), operation, version, entry.get("subresource", ""))
        found[manager] = Owned(entry.get("fieldsV1") or {}, entry.get("apiVersion", ""), entry.get("time"))
    return found


def _with_managed(obj: Object, managed: Managed) -> Object:
    """Return the object with the entries in the API server's order: appliers first, then by time and name."""
    entries = [
        {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": owned.version,
            **({"time": owned.time} if owned.time else {}),
            "fieldsType": "FieldsV1",
            "fieldsV1": owned.fields,
            **({"subresource": manager.subresource} if manager.subresource else {}),
        }
        for manager, owned in sorted(managed.items(), key=_order)
    ]
    whole = _without_managed(obj)
    if entries:
        whole["metadata"] = {**(whole.get("metadata") or {}), "managedFields": entries}
    return whole


def _order(item: tuple[Manager, Owned]) -> tuple[str, str, str, str, str]:
    manager, owned = item
    return manager.operation, owned.time or "", manager.name, owned.version, manager.subresource


def _without_managed(obj: Object) -> Object:
    meta = obj.get("metadata")
    if not isinstance(meta, Mapping) or "managedFields" not in meta:
        return dict(obj)
    return {**obj, "metadata": {key: value for key, value in meta.items() if key != "managedFields"}}


def _named(manager: Manager, owned: Owned) -> str:
    """Return a manager as conflicts name it."""
    text = json.dumps(manager.name)
    if manager.subresource:
        text += f' with subresource "{manager.subresource}"'
    if manager.operation == "Update":
        text += f" using {owned.version}"
        if owned.time:
            text += f" at {owned.time}"
    return text


def _capped(managed: Managed) -> Managed:
    """Merge the oldest updaters into one entry for each version if there are too many."""
    updaters = sorted(
        (item for item in managed.items() if item[0].operation == "Update"),
        key=lambda item: (item[1].time or "", item[0].name),
    )
    for manager, owned in (
        updaters[: max(0, len(updaters) - MOST_UPDATERS + 1)] if len(updaters) > MOST_UPDATERS else ()
    ):
        shared = Manager(ANCIENT, "Update", owned.version)
        if manager == shared:
            continue
        before = managed.get(shared)
        fields = field_sets.union(owned.fields, before.fields if before else {})
        del managed[manager]
        managed[shared] = Owned(fields, owned.version, owned.time)
    return managed
