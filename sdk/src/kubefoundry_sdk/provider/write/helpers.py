"""Helpers: objects beside the main one that a provider renders, of a few kinds of Kubernetes.

Like the main object they have an owner, are put back when others change them, and go when they are no longer
rendered. They are known by KubeFoundry's labels, because these kinds are everybody's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kubefoundry_sdk.api.kinds import HELPER_KINDS, Kind, Object
from kubefoundry_sdk.runtime.store import Store, key_of

Mark = tuple[str, str]
"""Kind and name: what tells the helpers of one ModelDeployment apart."""


def mark(obj: Object) -> Mark:
    return obj["kind"], obj["metadata"]["name"]


def marked(objects: Iterable[Object]) -> dict[Mark, Object]:
    return {mark(obj): obj for obj in objects}


def kind_of(helper: Object) -> Kind:
    """Raises KeyError for an object of a kind that no helper has."""
    return HELPER_KINDS[helper["kind"]]


@dataclass(frozen=True, slots=True)
class Helpers:
    """What is known of the helpers of all ModelDeployments: a store for each kind, empty for a provider that has
    none."""

    stores: Mapping[str, Store] = field(default_factory=dict)

    def of(self, uid: str) -> list[Object]:
        """The helpers that were made for the ModelDeployment of that uid."""
        return [whole(kind, obj) for kind, store in self for obj in store.indexed(uid)]

    def store(self, helper: Object) -> Store:
        """Where such a helper is kept. Raises KeyError for a kind that the provider does not name."""
        return self.stores[helper["kind"]]

    def live(self, helper: Object) -> Object | None:
        """The one of that kind and name that is there."""
        store = self.stores.get(helper["kind"])
        found = store.get(key_of(helper)) if store is not None else None
        return whole(HELPER_KINDS[helper["kind"]], found) if found is not None else None

    def __iter__(self) -> Iterator[tuple[Kind, Store]]:
        return ((HELPER_KINDS[name], store) for name, store in self.stores.items())


def whole(kind: Kind, obj: Object) -> Object:
    """With what the items of a list do not state."""
    return {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
