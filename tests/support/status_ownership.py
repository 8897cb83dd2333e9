"""Server-side apply to the conditions of a status, reduced to values and owners: what the API server does, without
one."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from kubefoundry_sdk.api.kinds import Object

Condition = Mapping[str, Any]


class OwnedConditions:
    """A ModelDeployment's conditions and the fields that each manager owns.

    `written`: the conditions that each manager applied last, whatever happened to its ownership since.
    """

    def __init__(self, generation: int = 2) -> None:
        self.generation = generation
        self.chosen: str | None = None
        self.values: dict[str, dict[str, Any]] = {}
        self.owners: dict[str, set[tuple[str, str]]] = {}
        self.written: dict[str, dict[str, dict[str, Any]]] = {}

    def apply(self, manager: str, *conditions: Condition) -> None:
        """Apply by force: fields that differ change their owner, and fields that the manager no longer states go with
        their last owner."""
        if not self.owners and self.values:
            # The API server's answer to an object without managedFields.
            self.owners["before-first-apply"] = self._fields()
        stated = {item["type"]: dict(item) for item in conditions}
        wanted = {(type_, field) for type_, item in stated.items() for field in item}
        changed = {
            (type_, field) for type_, field in wanted if self._value(type_, field) != stated[type_][field]
        }
        for other in self.owners:
            if other != manager:
                self.owners[other] -= changed
        released = self.owners.get(manager, set()) - wanted
        self.owners[manager] = wanted
        self.written[manager] = stated
        for type_, item in stated.items():
            self.values.setdefault(type_, {}).update(item)
        kept = set().union(*self.owners.values())
        for type_, field in released - kept:
            self.values.get(type_, {}).pop(field, None)
        self._drop_empty()

    def update(self, manager: str, type_: str, field: str, value: Any) -> None:
        """Change one field by an update, which takes it from all others."""
        if type_ in self.values and self._value(type_, field) != value:
            self.values[type_][field] = value
            for fields in self.owners.values():
                fields.discard((type_, field))
            self.owners.setdefault(manager, set()).add((type_, field))

    def reset(self) -> None:
        """Remove managedFields, as `[{}]` in a patch does."""
        self.owners.clear()

    def forget(self, manager: str) -> None:
        """Remove one manager's entry."""
        self.owners.pop(manager, None)

    def forge(self, manager: str) -> None:
        """Give a manager everything, as a tenant's patch of managedFields may."""
        self.owners[manager] = self._fields()

    def object(self) -> Object:
        """The ModelDeployment as the API server returns it."""
        entries = [
            {
                "manager": manager,
                "operation": "Update" if manager == "before-first-apply" else "Apply",
                "subresource": "status",
                "fieldsV1": {"f:status": {"f:conditions": _fields_v1(fields)}},
            }
            for manager, fields in self.owners.items()
            if fields
        ]
        return {
            "metadata": {
                "name": "m",
                "namespace": "n",
                "generation": self.generation,
                "managedFields": copy.deepcopy(entries),
            },
            "status": {
                "provider": {"name": self.chosen} if self.chosen else {},
                "conditions": [dict(item) for item in self.values.values()],
            },
        }

    def _value(self, type_: str, field: str) -> Any:
        return self.values.get(type_, {}).get(field)

    def _fields(self) -> set[tuple[str, str]]:
        return {(type_, field) for type_, item in self.values.items() for field in item}

    def _drop_empty(self) -> None:
        """An item of a list-map goes with its key."""
        self.values = {type_: item for type_, item in self.values.items() if "type" in item}


def _fields_v1(fields: set[tuple[str, str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for type_, field in sorted(fields):
        key = json.dumps({"type": type_}, separators=(",", ":"))
        found.setdefault(f"k:{key}", {".": {}})[f"f:{field}"] = {}
    return found
