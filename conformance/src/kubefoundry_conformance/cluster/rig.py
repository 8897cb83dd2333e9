"""What the checks of a process work with: an API server, the subject, and an upstream that the cases play."""

from __future__ import annotations

import asyncio
import copy
import subprocess
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from kubefoundry_conformance.cases import Case, Cases, merged
from kubefoundry_conformance.check import Check, Finding, Skipped
from kubefoundry_conformance.cluster import waiting
from kubefoundry_conformance.cluster.manifest import Rule
from kubefoundry_conformance.cluster.waiting import SECONDS, Holds, NotSeen, Present, condition, phase
from kubefoundry_local.audit_log import FinishedRequests
from kubefoundry_local.suite import Component, Suite
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import CRDS, EVENTS, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.runtime.lease import DURATION

MANAGER: Final = "kubefoundry-conformance"
MARK: Final = "kubefoundry.ai/conformance"
"""Label of what the kit makes outside of its namespace: the name of that namespace."""

RESTARTED: Final = SECONDS + 2 * DURATION
"""The same, after a process was killed that held a Lease."""

QUIET: Final = 2.0
"""How long something that must not happen is waited for."""

TIMEOUT: Final = 6
"""`--finalizer-timeout` and `--heartbeat-timeout` of the subject, in seconds."""

SHORT: Final = {
    "KUBEFOUNDRY_FINALIZER_TIMEOUT": str(TIMEOUT),
    "KUBEFOUNDRY_HEARTBEAT_TIMEOUT": str(TIMEOUT),
}


class Place(NamedTuple):
    """Where a check has its ModelDeployment; the upstream object has the same name."""

    name: str
    namespace: str


@dataclass(slots=True)
class Rig:
    """kind: the upstream kind in its stored version. crd: None for a kind of Kubernetes.

    system: the namespace of the subject's ServiceAccount and Lease. namespace: the one of the checks.
    """

    api: Client
    provider: str
    subject: Component
    account: str
    system: str
    namespace: str
    kind: Kind
    crd: Object | None
    cases: Cases
    runner: asyncio.Runner
    rules: Sequence[Rule] = ()
    """What the manifest permits the subject."""
    suite: Suite | None = None
    """Core beside it, and a control plane that is ours: None in a cluster that others use."""
    providers: Sequence[str] = ()
    """Of a selector: those that the checks register."""
    made: list[tuple[Kind, Object]] = field(default_factory=list)
    """What the checks made outside of the namespace, oldest first."""
    _requests: FinishedRequests | None = field(default=None, init=False)

    def check(
        self, look: Callable[[Rig], Coroutine[Any, Any, Finding | None]], expected: str
    ) -> Iterable[Finding]:
        """Runs a coroutine of a check; what did not come in time is its finding."""
        try:
            found = self.runner.run(look(self))
        except NotSeen as error:
            found = Finding(str(error), expected)
        except (ApiError, Unreachable) as error:
            found = Finding(f"the API server refuses what the check does: {error}", expected)
        return [found] if found else []

    @property
    def spec(self) -> dict[str, Any]:
        return next(iter(self.cases.specs.values()))

    @property
    def manager(self) -> str:
        return names.provider_manager(self.provider)

    @property
    def finalizer(self) -> str:
        return names.provider_finalizer(self.provider)

    async def until(
        self, kind: Kind, name: str, namespace: str | None, holds: Holds, *, seconds: float = SECONDS
    ) -> Object | None:
        """As `waiting.until`."""
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
        """As `until`, of an object that is there."""
        found = await self.until(
            kind, name, namespace, lambda obj: obj is not None and holds(obj), seconds=seconds
        )
        assert found is not None
        return found

    async def deployment(self, place: Place, holds: Present = bool, *, seconds: float = SECONDS) -> Object:
        return await self.there(MODEL_DEPLOYMENTS, *place, holds, seconds=seconds)

    async def upstream(self, place: Place, holds: Present = bool) -> Object:
        return await self.there(self.kind, *place, holds)

    async def events(self, place: Place) -> list[Object]:
        """Of the ModelDeployment, those that are there."""
        items, _ = await self.api.list(EVENTS, place.namespace)
        return [item for item in items if waiting.about(item, place.name)]

    async def gone(self, place: Place, *, seconds: float = SECONDS) -> None:
        """Waits until neither the ModelDeployment nor its upstream object is there."""
        await self.until(MODEL_DEPLOYMENTS, *place, lambda obj: obj is None, seconds=seconds)
        await self.until(self.kind, *place, lambda obj: obj is None, seconds=seconds)

    async def stored(self, place: Place) -> list[Object]:
        """Upstream objects of that name, or that were made for the ModelDeployment under another."""
        items, _ = await self.api.list(self.kind, place.namespace)
        return [
            item
            for item in items
            if place.name
            in (
                item["metadata"]["name"],
                *(one["name"] for one in item["metadata"].get("ownerReferences") or ()),
            )
        ]

    def place(self) -> Place:
        """One that nobody has used."""
        return Place(f"m-{uuid.uuid4().hex[:8]}", self.namespace)

    async def add(self, kind: Kind, body: Object) -> Object:
        """Makes something outside of the namespace; it is removed at the end. Raises ApiError where it is there.

        Interrupted, it waits for the API server's answer: what was made without an answer would never be removed.
        """
        meta = {
            **body["metadata"],
            "labels": {**(body["metadata"].get("labels") or {}), MARK: self.namespace},
        }

        async def recorded() -> Object:
            made = await self.api.create(kind, {**body, "metadata": meta}, manager=MANAGER)
            self.made.append((kind, made))
            return made

        request = asyncio.create_task(recorded())
        try:
            return await asyncio.shield(request)
        finally:
            await asyncio.wait([request])

    async def create(
        self, place: Place, *, spec: Mapping[str, Any] | None = None, manager: str = MANAGER, **metadata: Any
    ) -> Object:
        """A ModelDeployment for the subject; the first spec of the cases where none is given."""
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.MODEL_DEPLOYMENT,
            "metadata": {"name": place.name, "namespace": place.namespace, **metadata},
            "spec": self._asked(spec or self.spec),
        }
        return await self.api.create(MODEL_DEPLOYMENTS, body, manager=manager)

    def _asked(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        asked = copy.deepcopy(dict(spec))
        return {**asked, "provider": {**(asked.get("provider") or {}), "name": self.provider}}

    async def play(self, place: Place, case: Case) -> Object:
        """The upstream says what the case says."""
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

    def case(self, phase: str) -> Case:
        """The first that is of that phase. Raises Skipped."""
        for case in self.cases.statuses:
            plain = not case.object and case.spec is None and case.replicas is None
            if case.expect.phase == phase and case.status and plain and not case.expect.update_failed:
                return case
        raise Skipped(f"no case is {phase}")

    async def running(self, place: Place, **metadata: Any) -> Object:
        """A ModelDeployment that serves."""
        await self.create(place, **metadata)
        await self.play(place, self.case("Running"))
        return await self.deployment(place, lambda obj: phase(obj) == "Running")

    async def annotate(self, place: Place, key: str, value: str | None) -> Object:
        """The ModelDeployment with that annotation, as the API server answers it. value: None removes it."""
        live = await self.api.get(MODEL_DEPLOYMENTS, *place)
        held = {**(live["metadata"].get("annotations") or {}), key: value}
        kept = {name: text for name, text in held.items() if text is not None}
        return await self.edit(place, {"op": "add", "path": "/metadata/annotations", "value": kept})

    async def edit(self, place: Place, *operations: Mapping[str, Any]) -> Object:
        """A JSON patch of the ModelDeployment."""
        return await self.api.json_patch(MODEL_DEPLOYMENTS, *place, operations, manager=MANAGER)

    async def respec(self, place: Place, change: Mapping[str, Any]) -> Object:
        """The ModelDeployment with these parts of its spec changed."""
        live = await self.api.get(MODEL_DEPLOYMENTS, *place)
        return await self.edit(
            place, {"op": "replace", "path": "/spec", "value": merged(live["spec"], change)}
        )

    async def replace(self, place: Place, spec: Mapping[str, Any]) -> Object:
        """The ModelDeployment with that spec, for the subject."""
        return await self.edit(place, {"op": "replace", "path": "/spec", "value": self._asked(spec)})

    async def delete(self, place: Place) -> None:
        live = await self.api.get(MODEL_DEPLOYMENTS, *place)
        await self.api.delete(MODEL_DEPLOYMENTS, *place, uid=live["metadata"]["uid"])

    def writes(self, place: Place) -> list[dict[str, Any]]:
        """Finished writes of the subject to what has the place's name, dry runs apart, oldest first."""
        return [
            entry
            for entry in self.requests()
            if entry["verb"] in ("create", "update", "patch", "delete")
            and "dryRun=All" not in entry["requestURI"]
            and entry["responseStatus"]["code"] < 300
            and str(entry.get("objectRef", {}).get("name", "")).startswith(place.name)
        ]

    def requests(self) -> list[dict[str, Any]]:
        """All finished requests of the subject. Raises Skipped where the audit log is out of reach."""
        log = self.own("the audit log of a cluster that others use cannot be read").plane.audit_log
        assert log is not None
        if self._requests is None:
            self._requests = FinishedRequests(log, f"system:serviceaccount:{self.system}:{self.account}")
        return self._requests.until_now()

    def own(self, why: str) -> Suite:
        """The suite of a control plane that is ours. Raises Skipped with the reason in any other cluster."""
        if self.suite is None:
            raise Skipped(f"not run, because {why}")
        return self.suite

    async def stop(self) -> int | None:
        """Stops the subject; its exit code, None if it did not end and was killed. That is for PRO-2 to say."""
        try:
            return await asyncio.to_thread(self.subject.stop)
        except subprocess.TimeoutExpired:
            return None

    async def install_crd(self) -> None:
        """Raises ApiError where it is there."""
        if self.crd is not None:
            said = {"annotations": self.crd["metadata"].get("annotations") or {}}
            await self.add(CRDS, {**self.crd, "metadata": {**said, "name": self.kind.crd}})
            await self.there(
                CRDS, self.kind.crd, None, lambda obj: condition(obj, "Established").get("status") == "True"
            )

    async def remove_crd(self) -> None:
        self.own("others may have objects of the kind whose CRD would be removed")
        if self.crd is None:
            raise Skipped("the upstream kind is part of Kubernetes")
        live = await self.api.get(CRDS, self.kind.crd)
        await self.api.delete(CRDS, self.kind.crd, None, uid=live["metadata"]["uid"])
        await self.until(CRDS, self.kind.crd, None, lambda obj: obj is None)

    async def registered(self, holds: Present = bool) -> Object:
        return await self.there(PROVIDER_CONFIGS, self.provider, None, holds)


def of_rig(
    rule: str, title: str, look: Callable[[Rig], Coroutine[Any, Any, Finding | None]], expected: str
) -> Check[Rig]:
    """A check that is a coroutine. expected: what a wait in it waits for."""
    return Check(rule, title, lambda rig: rig.check(look, expected))


def now() -> str:
    """As the API server writes times."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
