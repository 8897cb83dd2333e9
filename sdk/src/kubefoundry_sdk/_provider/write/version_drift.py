"""Detects drift of an object that was written in an earlier version of a CRD with a conversion webhook.

The applied manifest cannot be compared with the object in the current version, and a write only for the comparison
would be needless. So the object is read once more, in the version in which it was written.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._provider.write import drift
from kubefoundry_sdk._runtime.store import key_of


class LastComparison:
    """The generation at which an object matched the applied manifest, so that it is read only once."""

    def __init__(self) -> None:
        self._matching: tuple[str, int] | None = None

    def matches(self, live: Object) -> bool:
        """Check whether that generation of the object was found to match."""
        return self._matching == _mark(live)

    def note(self, live: Object) -> None:
        """Record that this generation of the object matches."""
        self._matching = _mark(live)


async def drifted(
    client: Client,
    kind: Kind,
    applied: Object,
    live: Object,
    last: LastComparison,
    ignored_differences: Sequence[str],
) -> tuple[str, ...]:
    """Return the paths, as the applied version names them, at which someone has changed the object.

    Send no request for a generation that was found to match. If the applied version is no longer served, compare only
    labels, annotations and owners, which are the same in every version. Raises ApiError.
    """
    metadata = tuple(drift.differences({"metadata": applied["metadata"]}, live))
    if last.matches(live):
        return metadata
    version = str(applied.get("apiVersion", kind.api_version)).rpartition("/")[2]
    namespace, name = key_of(live)
    try:
        current = await client.get(Kind(kind.group, version, kind.plural, kind.kind), name, namespace)
    except ApiError as error:
        if not error.not_found:
            raise
        last.note(live)
        return metadata
    differences = tuple(drift.differences(applied, current, ignored_differences))
    if not differences:
        last.note(current)
    return differences


def _mark(live: Object) -> tuple[str, int]:
    return live["metadata"]["uid"], live["metadata"]["generation"]
