"""ModelDeployments of the checks, and the status of their upstream objects, which the kit writes."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from kubefoundry_conformance.cases import Case, Cases, merged
from kubefoundry_conformance.check import Skipped
from kubefoundry_conformance.cluster import waiting
from kubefoundry_conformance.cluster.settings import MANAGER
from kubefoundry_conformance.cluster.waiting import SECONDS, Holds, Present, phase
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import EVENTS, MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._cluster.client import Client


class Place(NamedTuple):
    """Name and namespace of a ModelDeployment. Its upstream object has the same name."""

    name: str
    namespace: str


class Deployments:
    """Creates, edits and reads the ModelDeployments of the checks and their upstream objects."""

    __slots__ = ()
    api: Client
    provider: str
    namespace: str
    kind: Kind
    cases: Cases

    @property
    def spec(self) -> dict[str, Any]:
        """Return the first spec of the cases."""
        return next(iter(self.cases.specs.values()))

    def place(self) -> Place:
        """Return an unused place."""
        return Place(f"m-{uuid.uuid4().hex[:8]}", self.namespace)

    def case(self, *phases: str) -> Case:
        """Return the first case of `case_of`, of the subject's cases."""
        return case_of(self.cases, *phases)

    async def until(
        self, kind: Kind, name: str, namespace: str | None, holds: Holds, *, seconds: float = SECONDS
    ) -> Object | None:
        """Wait as `waiting.until` does."""
        return await waiting.until(self.api, kind, name, namespace, holds, seconds=seconds)

    async def there(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        holds: Present = bool,
        *,
        seconds: float = SECONDS,
    ) -> Object:
        """Wait until an object exists and `holds` is true, and return the object.

        Raises:
            NotSeen: `holds` was true of no state in time.
        """
        live = await self.until(
            kind, name, namespace, lambda obj: obj is not None and holds(obj), seconds=seconds
        )
        assert live is not None
        return live

    async def deployment(self, place: Place, holds: Present = bool, *, seconds: float = SECONDS) -> Object:
        """Wait for a ModelDeployment, and return it.

        Raises:
            NotSeen: `holds` was true of no state in time.
        """
        return await self.there(MODEL_DEPLOYMENTS, *place, holds, seconds=seconds)

    async def upstream(self, place: Place, holds: Present = bool) -> Object:
        """Wait for an upstream object, and return it.

        Raises:
            NotSeen: `holds` was true of no state in time.
        """
        return await self.there(self.kind, *place, holds)

    async def gone(self, place: Place, *, seconds: float = SECONDS) -> None:
        """Wait until neither the ModelDeployment nor its upstream object exists.

        Raises:
            NotSeen: One of them still exists.
        """
        await self.until(MODEL_DEPLOYMENTS, *place, lambda obj: obj is None, seconds=seconds)
        await self.until(self.kind, *place, lambda obj: obj is None, seconds=seconds)

    async def events(self, place: Place) -> list[Object]:
        """Return the Events of a ModelDeployment."""
        items, _ = await self.api.list(EVENTS, place.namespace)
        return [item for item in items if waiting.about(item, place.name)]

    async def stored(self, place: Place) -> list[Object]:
        """Return the upstream objects that have the name of a ModelDeployment or are owned by it."""
        items, _ = await self.api.list(self.kind, place.namespace)
        return [
            item
            for item in items
            if place.name
            in (
                item["metadata"]["name"],
                *(owner["name"] for owner in item["metadata"].get("ownerReferences") or ()),
            )
        ]

    async def create(
        self, place: Place, *, spec: Mapping[str, Any] | None = None, manager: str = MANAGER, **metadata: Any
    ) -> Object:
        """Create a ModelDeployment that names the subject, by default with the first spec of the cases."""
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.MODEL_DEPLOYMENT,
            "metadata": {"name": place.name, "namespace": place.namespace, **metadata},
            "spec": self._for_subject(spec or self.spec),
        }
        return await self.api.create(MODEL_DEPLOYMENTS, body, manager=manager)

    def _for_subject(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        body = copy.deepcopy(dict(spec))
        return {**body, "provider": {**(body.get("provider") or {}), "name": self.provider}}

    async def play(self, place: Place, case: Case) -> Object:
        """Write the status of a case to the upstream object."""
        live = await self.upstream(place)
        meta = {key: live["metadata"][key] for key in ("name", "namespace", "uid")}
        status = copy.deepcopy(case.status or {})
        if "observedGeneration" in status:
            status["observedGeneration"] = live["metadata"]["generation"]
        for item in status.get("conditions") or ():
            item.setdefault("lastTransitionTime", "2026-11-22T00:00:00Z")
        body = {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "metadata": meta,
            "status": status,
        }
        return await self.api.apply_status(self.kind, body, manager=MANAGER)

    async def running(self, place: Place, **metadata: Any) -> Object:
        """Create a ModelDeployment, and wait until it is Running."""
        await self.create(place, **metadata)
        await self.play(place, self.case("Running"))
        return await self.deployment(place, lambda obj: phase(obj) == "Running")

    async def edit(self, place: Place, *operations: Mapping[str, Any]) -> Object:
        """Apply a JSON patch to a ModelDeployment, and return it."""
        return await self.api.json_patch(MODEL_DEPLOYMENTS, *place, operations, manager=MANAGER)

    async def annotate(self, place: Place, key: str, value: str | None) -> Object:
        """Set an annotation of a ModelDeployment, or remove it if `value` is None."""
        live = await self.api.get(MODEL_DEPLOYMENTS, *place)
        annotations = {**(live["metadata"].get("annotations") or {}), key: value}
        kept = {name: text for name, text in annotations.items() if text is not None}
        return await self.edit(place, {"op": "add", "path": "/metadata/annotations", "value": kept})

    async def respec(self, place: Place, change: Mapping[str, Any]) -> Object:
        """Merge a change into the spec of a ModelDeployment."""
        live = await self.api.get(MODEL_DEPLOYMENTS, *place)
        return await self.edit(
            place, {"op": "replace", "path": "/spec", "value": merged(live["spec"], change)}
        )

    async def replace(self, place: Place, spec: Mapping[str, Any]) -> Object:
        """Replace the spec of a ModelDeployment by one that names the subject."""
        return await self.edit(place, {"op": "replace", "path": "/spec", "value": self._for_subject(spec)})

    async def delete(self, place: Place) -> None:
        """Delete a ModelDeployment."""
        live = await self.api.get(MODEL_DEPLOYMENTS, *place)
        await self.api.delete(MODEL_DEPLOYMENTS, *place, uid=live["metadata"]["uid"])


def case_of(cases: Cases, *phases: str) -> Case:
    """Return the first case that has a status and one of the phases; earlier phases are preferred.

    Raises:
        Skipped: No case has one of the phases.
    """
    for preferred in phases:
        for case in cases.statuses:
            plain = not case.object and case.spec is None and case.replicas is None
            if case.expect.phase == preferred and case.status and plain and not case.expect.update_failed:
                return case
    raise Skipped(f"no case is {' or '.join(phases)}")
