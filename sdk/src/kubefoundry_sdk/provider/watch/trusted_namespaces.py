"""In which namespaces the upstream operator is believed to be: those that an administrator has named or labelled.

A tenant can make a Deployment or a Lease of any name in a namespace of its own; what it says there counts for
nothing. A Namespace's labels are beyond the ClusterRoles `edit` and `admin` of a namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.names import OPERATORS_LABEL

SELECTOR: Final = f"{OPERATORS_LABEL}=true"


class TrustedNamespaces:
    """The sink of the labelled Namespaces. named: those that count without a label. `changed` is called when others
    count than before, and once they are known."""

    def __init__(self, named: Collection[str], changed: Callable[[], None]) -> None:
        self._named = frozenset(named)
        self._labelled: frozenset[str] = frozenset()
        self._changed = changed
        self.known = False
        """Whether the labelled ones were looked for, or may not be."""

    def believed(self, namespace: str) -> bool:
        """Whether what is said there counts."""
        return namespace in self._named or namespace in self._labelled

    def __str__(self) -> str:
        """Where the operator was looked for, to be read after "in"."""
        named = (
            f"{', '.join(sorted(self._named | self._labelled))} or " if self._named or self._labelled else ""
        )
        return f"{named}a namespace labelled {SELECTOR}"

    def replace(self, objects: Iterable[Object], resource_version: str, *, rewound: bool = False) -> None:
        self._take(frozenset(obj["metadata"]["name"] for obj in objects))

    def put(self, obj: Object) -> None:
        self._take(self._labelled | {obj["metadata"]["name"]})

    def remove(self, obj: Object) -> None:
        self._take(self._labelled - {obj["metadata"]["name"]})

    def refused(self) -> None:
        """They may not be watched: those that are named have to do."""
        self._take(frozenset())

    def _take(self, labelled: frozenset[str]) -> None:
        news = not self.known or labelled != self._labelled
        self.known, self._labelled = True, labelled
        if news:
            self._changed()
