"""Helpers: further objects that a provider renders besides the main object, of a few built-in kinds.

Like the main object, helpers have an owner, are corrected when others change them, and are deleted when they are no
longer rendered. They are found by KubeFoundry's labels, because other software uses these kinds, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kubefoundry_sdk._api.kinds import HELPER_KINDS, Kind, Object
from kubefoundry_sdk._runtime.store import Store, key_of

Mark = tuple[str, str]
"""Kind and name: unique among the helpers of one ModelDeployment."""


def mark(obj: Object) -> Mark:
    """Return kind and name of a helper."""
    return obj["kind"], obj["metadata"]["name"]


def marked(objects: Iterable[Object]) -> dict[Mark, Object]:
    """Return the objects by kind and name."""
    return {mark(obj): obj for obj in objects}


def kind_of(helper: Object) -> Kind:
    """Return the kind of a helper. Raise KeyError for a kind that helpers cannot have."""
    return HELPER_KINDS[helper["kind"]]


@dataclass(frozen=True, slots=True)
class Helpers:
    """The helpers of all ModelDeployments: a store for each kind, empty for a provider without helpers."""

    stores: Mapping[str, Store] = field(default_factory=dict)

    def of(self, namespace: str, uid: str) -> list[Object]:
        """Return the helpers created for the ModelDeployment of that uid in the namespace."""
        return [whole(kind, obj) for kind, store in self for obj in store.indexed(uid, namespace=namespace)]

    def exist(self, namespace: str, uid: str) -> bool:
        """Check whether `of` finds a helper."""
        return any(store.indexed_keys(uid, namespace=namespace) for store in self.stores.values())

    def store(self, helper: Object) -> Store:
        """Return the store of helpers of that kind. Raise KeyError for a kind that the provider does not declare."""
        return self.stores[helper["kind"]]

    def live(self, helper: Object) -> Object | None:
        """Return the live helper of that kind and name, or None."""
        store = self.stores.get(helper["kind"])
        stored = store.get(key_of(helper)) if store is not None else None
        return whole(HELPER_KINDS[helper["kind"]], stored) if stored is not None else None

    def __iter__(self) -> Iterator[tuple[Kind, Store]]:
        return ((HELPER_KINDS[name], store) for name, store in self.stores.items())


def whole(kind: Kind, obj: Object) -> Object:
    """Return the object with the fields that the items of a list omit."""
    return {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
