"""Simulate server-side apply to the conditions of a status, reduced to values and owners."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from kubefoundry_sdk._api.kinds import Object

Condition = Mapping[str, Any]


class OwnedConditions:
    """A ModelDeployment's conditions, and the fields that each manager owns.

    Attributes:
        generation: Generation of the ModelDeployment.
        chosen: The selected provider.
        values: Fields of each condition by type.
        owners: Fields by manager, as (type, field).
        written: The conditions that each manager applied last, even if it has lost their ownership since.
    """

    def __init__(self, generation: int = 2) -> None:
        self.generation = generation
        self.chosen: str | None = None
        self.values: dict[str, dict[str, Any]] = {}
        self.owners: dict[str, set[tuple[str, str]]] = {}
        self.written: dict[str, dict[str, dict[str, Any]]] = {}

    def apply(self, manager: str, *conditions: Condition) -> None:
        """Apply by force.

        Fields with other values change their owner. Fields that the manager applies no longer are removed with their
        last owner.
        """
        if not self.owners and self.values:
            # The API server does this for an object without managedFields.
            self.owners["before-first-apply"] = self._fields()
        applied = {item["type"]: dict(item) for item in conditions}
        fields = {(type_, field) for type_, item in applied.items() for field in item}
        changed = {
            (type_, field) for type_, field in fields if self._value(type_, field) != applied[type_][field]
        }
        for other in self.owners:
            if other != manager:
                self.owners[other] -= changed
        released = self.owners.get(manager, set()) - fields
        self.owners[manager] = fields
        self.written[manager] = applied
        for type_, item in applied.items():
            self.values.setdefault(type_, {}).update(item)
        owned = set().union(*self.owners.values())
        for type_, field in released - owned:
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
        """Return the ModelDeployment as the API server does."""
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
        """Remove the items of the list-map that have lost their key."""
        self.values = {type_: item for type_, item in self.values.items() if "type" in item}


def _fields_v1(fields: set[tuple[str, str]]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for type_, field in sorted(fields):
        key = json.dumps({"type": type_}, separators=(",", ":"))
        entries.setdefault(f"k:{key}", {".": {}})[f"f:{field}"] = {}
    return entries
