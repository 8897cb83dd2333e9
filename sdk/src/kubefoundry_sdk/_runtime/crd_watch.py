"""Watches a CRD by name, and its objects while the CRD exists."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from kubefoundry_sdk._api.kinds import CRDS, Kind, Object
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk._runtime.store import Store


class CrdWatch:
    """The sink of the watch of one CRD. `changed` is called once all of its objects are listed.

    Subclasses define `defined`: called with the CRD as it is now, None if it is gone or being deleted. For `refused`
    see `Process.follow`: it is about the CRD, not its objects.
    """

    def __init__(
        self,
        process: Process,
        crd: str,
        objects: Store,
        changed: Callable[[], None],
        *,
        refused: Callable[[], None] | None = None,
    ) -> None:
        self._process = process
        self._crd = crd
        self._changed = changed
        self._refused_crd = refused
        self._tasks: list[asyncio.Task[None] | None] = []
        self.objects = objects
        self.listed = False
        """Whether the first list, with or without the CRD, has arrived."""

    async def run(self) -> None:
        """Watch the CRD until cancelled, by name and without listing all CRDs of a cluster (contract §6)."""
        selector = {"fieldSelector": f"metadata.name={self._crd}"}
        await self._process.follow(CRDS, self, selector=selector, refused=self._refused_crd)

    def defined(self, crd: Object | None) -> None:
        """Take the CRD as it is defined now; None if it does not exist or is being deleted."""
        raise NotImplementedError

    def replace(self, objects: Iterable[Object], resource_version: str, *, rewound: bool = False) -> None:
        """Take the CRD if the list has it."""
        crd = next(iter(objects), None)
        self.listed = True
        if crd is not None:
            self.put(crd)
        else:
            self.defined(None)

    def put(self, obj: Object) -> None:
        """Take the CRD. A CRD that is being deleted counts as deleted."""
        # Its objects are deleted with it, and it accepts no new ones.
        self.defined(None if obj["metadata"].get("deletionTimestamp") else obj)

    def remove(self, obj: Object) -> None:
        """Take the deletion of the CRD."""
        self.defined(None)

    def follow_objects(
        self,
        kind: Kind | None,
        *,
        selector: Mapping[str, str] | None = None,
        refused: Callable[[], None] | None = None,
        failing: Callable[[Exception | None], None] | None = None,
    ) -> None:
        """Start or move the watch of the objects, or stop it (None).

        For `refused` and `failing` see `Process.follow`.
        """
        # Cancel the task of the watch itself. If the watch were nested in another task, it could store an event after
        # the store was cleared.
        for task in self._tasks:
            if task:
                task.cancel()
        self._tasks.clear()
        self.objects.clear()
        if kind is not None:
            self._tasks = [
                self._process.background(
                    f"watch of {kind.plural}",
                    lambda: self._process.follow(
                        kind,
                        self.objects,
                        store=self.objects,
                        selector=selector,
                        refused=refused,
                        failing=failing,
                    ),
                ),
                self._process.background(f"first listing of {kind.plural}", self._report_synced),
            ]

    async def _report_synced(self) -> None:
        await self.objects.synced.wait()
        self._changed()
