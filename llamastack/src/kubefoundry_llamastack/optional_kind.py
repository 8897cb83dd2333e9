"""Watches a kind of another project or release: whether it is installed, and its objects while it is."""

from __future__ import annotations

from collections.abc import Callable

from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._runtime.crd_watch import CrdWatch
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk._runtime.store import Store


class FollowedKind(CrdWatch):
    """Follows a kind that may be missing.

    Args:
        process: The process that runs the watches.
        kind: The kind.
        changed: Called when the CRD is created, changed or deleted, and once all objects are listed.
        objects: Whether to watch the objects as well.
        required: Whether to wait for the permission to read the CRD. Otherwise the kind counts as not installed.
    """

    def __init__(
        self,
        process: Process,
        kind: Kind,
        changed: Callable[[], None],
        *,
        objects: bool,
        required: bool = True,
    ) -> None:
        refused = None if required else self._crd_refused
        super().__init__(process, kind.crd, Store(), changed, refused=refused)
        self._kind = kind
        self._follows = objects
        self.definition: Object | None = None
        """The CRD, None while it is not installed."""
        self._forbidden = False

    @property
    def settled(self) -> bool:
        """Check whether all objects are listed, or it is certain that there are none."""
        if not self.listed or self.definition is None or not self._follows:
            return self.listed
        return self._forbidden or self.objects.synced.is_set()

    @property
    def readable(self) -> bool:
        """Check whether the objects are listed: the kind is installed, and we may read it."""
        return self.definition is not None and self.objects.synced.is_set()

    def defined(self, crd: Object | None) -> None:
        """Record the CRD, and start or stop the watch of its objects.

        Args:
            crd: The CRD, None if it is not installed.
        """
        if self._follows and crd is not None and not _serves(crd, self._kind.version):
            # A listing would fail forever.
            crd = None
        was_defined = self.definition is not None
        self.definition = crd
        if self._follows and was_defined != (crd is not None):
            self.follow_objects(None if crd is None else self._kind, refused=self._refused)
        self._changed()

    def _crd_refused(self) -> None:
        """Treat the kind as not installed if nothing is known about it."""
        if not self.listed:
            self.replace((), "")

    def _refused(self) -> None:
        """Treat the kind as not installed, because we may not read it."""
        self._forbidden = True
        self.objects.clear()
        self._changed()


def _serves(crd: Object, version: str) -> bool:
    return any(item["name"] == version and item.get("served") for item in crd["spec"]["versions"])
