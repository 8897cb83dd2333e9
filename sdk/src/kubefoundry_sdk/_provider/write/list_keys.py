"""Items of lists by the keys that name them in `metadata.managedFields`: `k:{"containerPort":80,"protocol":"TCP"}`.

A user who may edit an object decides how many items and keys it has. So each list is read only a few times, however
many keys are looked up in it. An item may omit a key that has a default, but not all keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import NoneType
from typing import Any, Final

MOST: Final = 4
"""The most keys that name an item, and the most sets of keys that are looked up in a list. A list in Kubernetes has
one set, of at most two keys. Any further set is forged."""

Keys = Mapping[str, Any]

_SCALARS: Final = (str, int, float, NoneType)


def read(text: str) -> Keys | None:
    """Return the keys in the text after `k:`, None if they name no item."""
    try:
        keys = json.loads(text)
    except ValueError:
        return None
    return keys if isinstance(keys, dict) and 0 < len(keys) <= MOST else None


class Items:
    """The items of a list."""

    def __init__(self, items: Any) -> None:
        self._items = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        self._places: dict[frozenset[str], dict[tuple[str, ...], dict[Any, int]]] = {}

    def get(self, keys: Keys, otherwise: Any = None) -> Any:
        """Return the first item with these keys, `otherwise` if there is none."""
        indexes = [
            index
            for present, places in self._index(frozenset(keys)).items()
            if (index := places.get(_values(keys, present))) is not None
        ]
        return self._items[min(indexes)] if indexes else otherwise

    def _index(self, names: frozenset[str]) -> dict[tuple[str, ...], dict[Any, int]]:
        """Return the index of the first item for each combination of values, by the keys that the item has."""
        if names not in self._places:
            if len(self._places) == MOST:
                return {}
            places: dict[tuple[str, ...], dict[Any, int]] = {}
            for index, item in enumerate(self._items):
                if present := tuple(sorted(names & item.keys())):
                    places.setdefault(present, {}).setdefault(_values(item, present), index)
            self._places[names] = places
        return self._places[names]


class Fields:
    """The owned fields of the items of a list."""

    def __init__(self, fields: Keys) -> None:
        self._named = [
            (keys, below)
            for key, below in fields.items()
            if key.startswith("k:") and (keys := read(key[2:])) is not None
        ]
        self._names = self._named[0][0].keys() if self._named else frozenset()
        self._below: dict[tuple[str, ...], dict[Any, Any]] = {}

    def of(self, item: Keys) -> Any:
        """Return the owned fields of an item, None if there are none."""
        present = tuple(sorted(self._names & item.keys()))
        if not present:
            return None
        if present not in self._below:
            below: dict[Any, Any] = {}
            for keys, fields in self._named:
                if keys.keys() == self._names:
                    below.setdefault(_values(keys, present), fields)
            self._below[present] = below
        return self._below[present].get(_values(item, present))


def _values(item: Keys, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the values as a hashable key. A map or list names no item and becomes a value without equal."""
    return tuple(value if isinstance(value := item[name], _SCALARS) else object() for name in names)
