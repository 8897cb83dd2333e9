"""The namespaces in which the upstream operator is trusted, because an administrator has named or labelled them.

A tenant can create a Deployment or a Lease of any name in its own namespace, so objects in other namespaces are
ignored. A tenant cannot add the label, because the ClusterRoles `edit` and `admin` do not permit changes of a
Namespace's labels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._api.names import OPERATORS_LABEL

SELECTOR: Final = f"{OPERATORS_LABEL}=true"


class TrustedNamespaces:
    """The sink of the watch of labelled Namespaces. The Namespaces in `named` count without a label.

    `changed` is called when the set changes, and once it is known.
    """

    def __init__(self, named: Collection[str], changed: Callable[[], None]) -> None:
        self._named = frozenset(named)
        self._labelled: frozenset[str] = frozenset()
        self._changed = changed
        self.is_known = False
        """Whether labelled namespaces have been listed, or the permission is missing."""

    def trusts(self, namespace: str) -> bool:
        """Check whether objects in that namespace count."""
        return namespace in self._named or namespace in self._labelled

    def __str__(self) -> str:
        """Return the namespaces that were searched for the operator, as text that follows "in"."""
        named = (
            f"{', '.join(sorted(self._named | self._labelled))} or " if self._named or self._labelled else ""
        )
        return f"{named}a namespace labelled {SELECTOR}"

    def replace(self, objects: Iterable[Object], resource_version: str, *, rewound: bool = False) -> None:
        """Take the complete list of labelled Namespaces."""
        self._take(frozenset(obj["metadata"]["name"] for obj in objects))

    def put(self, obj: Object) -> None:
        """Take a Namespace that has the label."""
        self._take(self._labelled | {obj["metadata"]["name"]})

    def remove(self, obj: Object) -> None:
        """Take a Namespace that was deleted or has lost the label."""
        self._take(self._labelled - {obj["metadata"]["name"]})

    def refused(self) -> None:
        """Trust only the named namespaces, because Namespaces may not be watched."""
        self._take(frozenset())

    def _take(self, labelled: frozenset[str]) -> None:
        is_changed = not self.is_known or labelled != self._labelled
        self.is_known, self._labelled = True, labelled
        if is_changed:
            self._changed()
