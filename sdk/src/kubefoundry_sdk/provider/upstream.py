"""The upstream kind as this cluster has it: its CRD is watched and probed, its objects are followed."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from typing import Any

from kubefoundry_sdk.api.kinds import CRDS, Kind, Object
from kubefoundry_sdk.provider.contract import Provider, Schema, UnsupportedSchema
from kubefoundry_sdk.runtime.process import Process
from kubefoundry_sdk.runtime.store import Store


class Upstream:
    """The sink of the CRD's watch. `changed` is called whenever what can be done upstream has changed."""

    def __init__(
        self, process: Process, provider: Provider, manager: str, changed: Callable[[], None]
    ) -> None:
        self._process = process
        self._provider = provider
        self._changed = changed
        self._followed: str | None = None
        self._tasks: list[asyncio.Task[None] | None] = []
        self.objects = Store(managers=frozenset({manager}))
        self.schema: Schema | UnsupportedSchema | None = None
        """What `probe` found; None while the CRD is not installed."""
        self.digest: str | None = None
        """Of the schema that is written through; reported, never decided on (contract §4.8)."""
        self.listed = False
        """Whether the CRD was looked for at least once."""

    @property
    def kind(self) -> Kind | None:
        """How to address the objects, None while that is unknown."""
        if not isinstance(self.schema, Schema):
            return None
        group, version = self.schema.api_version.split("/")
        upstream = self._provider.upstream
        return Kind(group, version, upstream.plural, upstream.kind)

    @property
    def settled(self) -> bool:
        """Whether all objects of the kind are known, or it is known that there can be none."""
        return self.listed and (self.kind is None or self.objects.synced.is_set())

    async def run(self) -> None:
        """Watches the CRD by name: no listing of all CRDs of a cluster (contract §6)."""
        selector = {"fieldSelector": f"metadata.name={self._provider.upstream.crd}"}
        await self._process.follow(CRDS, self, selector=selector)

    def replace(self, objects: list[Object], resource_version: str) -> None:
        first = not self.listed
        self.listed = True
        if objects:
            self.put(objects[0])
        else:
            self._gone()
        if first and self.schema is None:
            self._changed()

    def put(self, obj: Object) -> None:
        if obj["metadata"].get("deletionTimestamp"):
            # It takes its objects with it and no new ones.
            self._gone()
            return
        probed = self._provider.probe(obj)
        digest = schema_digest(obj, probed)
        if (probed, digest) == (self.schema, self.digest):
            return
        self.schema, self.digest = probed, digest
        self._follow()
        self._changed()

    def remove(self, obj: Object) -> None:
        self._gone()

    def _gone(self) -> None:
        if self.schema is None:
            return
        self.schema, self.digest = None, None
        self._follow()
        self._changed()

    def _follow(self) -> None:
        """Starts, ends or moves the watch of the objects to the version that is used now."""
        kind = self.kind
        version = kind.version if kind else None
        if version == self._followed:
            return
        self._followed = version
        # The watch is itself the task that is cancelled: inside another, it could store an event after the clearing.
        for task in self._tasks:
            if task:
                task.cancel()
        self._tasks.clear()
        self.objects.clear()
        if kind:
            self._tasks = [
                self._process.background(self._process.follow(kind, self.objects)),
                self._process.background(self._tell_when_synced()),
            ]

    async def _tell_when_synced(self) -> None:
        await self.objects.synced.wait()
        self._changed()


def schema_digest(crd: Object, probed: Schema | UnsupportedSchema) -> str | None:
    """First 12 hex digits of the SHA-256 over the used version's schema without its descriptions."""
    if not isinstance(probed, Schema):
        return None
    wanted = probed.api_version.rsplit("/", 1)[-1]
    for version in crd["spec"]["versions"]:
        if version["name"] == wanted:
            text = json.dumps(
                _undescribed((version.get("schema") or {}).get("openAPIV3Schema") or {}),
                sort_keys=True,
                separators=(",", ":"),
            )
            return hashlib.sha256(text.encode()).hexdigest()[:12]
    return None


def _undescribed(schema: Any) -> Any:
    """Without descriptions: they change between releases that mean the same. A property may be called so."""
    if isinstance(schema, dict):
        return {
            key: _undescribed(value)
            for key, value in schema.items()
            if not (key == "description" and isinstance(value, str))
        }
    if isinstance(schema, list):
        return [_undescribed(item) for item in schema]
    return schema
