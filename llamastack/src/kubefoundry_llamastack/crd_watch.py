"""A kind that may come and go: its CRD is watched by name, and its objects while it is installed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from kubefoundry_sdk.api.kinds import CRDS, Kind, Object
from kubefoundry_sdk.runtime.process import Process
from kubefoundry_sdk.runtime.store import Store


class Followed:
    """The sink of the CRD's watch. `changed` is called when the CRD has come, changed or gone, and when the objects
    are all known. objects: whether those are followed, too."""

    def __init__(self, process: Process, kind: Kind, changed: Callable[[], None], *, objects: bool) -> None:
        self._process = process
        self._kind = kind
        self._changed = changed
        self._follows = objects
        self._tasks: list[asyncio.Task[None] | None] = []
        self.objects = Store()
        self.listed = False
        """Whether the CRD was looked for at least once."""
        self.definition: Object | None = None
        """The CRD, None while it is not installed."""
        self._forbidden = False

    @property
    def settled(self) -> bool:
        """Whether all objects are known, or it is known that there can be none."""
        if not self.listed or self.definition is None or not self._follows:
            return self.listed
        return self._forbidden or self.objects.synced.is_set()

    @property
    def readable(self) -> bool:
        """Whether the objects are known: the kind is installed, and we may read it."""
        return self.definition is not None and self.objects.synced.is_set()

    async def run(self) -> None:
        """Watches the CRD until cancelled."""
        selector = {"fieldSelector": f"metadata.name={self._kind.crd}"}
        await self._process.follow(CRDS, self, selector=selector)

    def replace(self, objects: Iterable[Object], resource_version: str, *, rewound: bool = False) -> None:
        self.listed = True
        self._set(next(iter(objects), None))

    def put(self, obj: Object) -> None:
        # One that is being deleted takes its objects with it and no new ones.
        self._set(None if obj["metadata"].get("deletionTimestamp") else obj)

    def remove(self, obj: Object) -> None:
        self._set(None)

    def _set(self, definition: Object | None) -> None:
        there = self.definition is not None
        self.definition = definition
        if self._follows and there != (definition is not None):
            self._follow()
        self._changed()

    def _follow(self) -> None:
        for task in self._tasks:
            if task:
                task.cancel()
        self._tasks.clear()
        self.objects.clear()
        if self.definition is not None:
            self._tasks = [
                self._process.background(
                    f"watch of {self._kind.plural}",
                    lambda: self._process.follow(self._kind, self.objects, refused=self._refused),
                ),
                self._process.background(f"first listing of {self._kind.plural}", self._tell_when_synced),
            ]

    def _refused(self) -> None:
        """Without permission the kind is as good as not installed."""
        self._forbidden = True
        self.objects.clear()
        self._changed()

    async def _tell_when_synced(self) -> None:
        await self.objects.synced.wait()
        self._changed()
