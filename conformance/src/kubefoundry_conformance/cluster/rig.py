"""A control plane with core, the subject as its manifest says, and an upstream that the cases play."""

from __future__ import annotations

import asyncio
import copy
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from kubefoundry_conformance.cases import Case, Cases, Unusable
from kubefoundry_conformance.check import Check, Finding, Skipped
from kubefoundry_local.audit_log import requests_by_user
from kubefoundry_local.control_plane import own_control_plane
from kubefoundry_local.suite import NAMESPACE, Component, Suite
from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import (
    CRDS,
    EVENTS,
    MODEL_DEPLOYMENTS,
    NAMESPACES,
    PROVIDER_CONFIGS,
    Kind,
    Object,
)
from kubefoundry_sdk.cluster import credentials
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.runtime.lease import DURATION

MANAGER: Final = "kubefoundry-conformance"
SECONDS: Final = 20.0
"""How long anything is waited for."""

RESTARTED: Final = SECONDS + 2 * DURATION
"""The same, after a process was killed that held a Lease."""

QUIET: Final = 2.0
"""How long something that must not happen is waited for."""

TIMEOUT: Final = 6
"""`--finalizer-timeout` and `--heartbeat-timeout` of the subject, in seconds."""

Holds = Callable[[Object | None], Any]
Present = Callable[[Object], Any]


class NotSeen(Exception):
    """What was waited for did not come; the text is the last state."""


@dataclass(slots=True)
class Rig:
    """kind: the upstream kind in its stored version. crd: None for a kind of Kubernetes."""

    suite: Suite
    api: Client
    provider: str
    subject: Component
    account: str
    kind: Kind
    crd: Object | None
    cases: Cases
    runner: asyncio.Runner
    providers: Sequence[str] = ()
    """Of a selector: those that the checks register."""
    made: list[str] = field(default_factory=list)

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
        """The object once `holds` is true of it (None stands for: there is none). Raises NotSeen."""
        last: Object | None = None
        selector = {"fieldSelector": f"metadata.name={name}"}
        try:
            async with asyncio.timeout(seconds):
                items, version = await self.api.list(kind, namespace, selector=selector)
                last = items[0] if items else None
                if holds(last):
                    return last
                watch = self.api.watch(
                    kind, namespace, resource_version=version, seconds=300, silence=300, selector=selector
                )
                async for event in watch:
                    if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                        last = None if event["type"] == "DELETED" else event["object"]
                        if holds(last):
                            return last
        except TimeoutError:
            pass
        shown = (last or {}).get("status") or {
            "finalizers": (last or {}).get("metadata", {}).get("finalizers")
        }
        raise NotSeen(f"after {seconds:.0f} s {kind.kind} {name} is {shown if last else 'not there'}")

    async def event(self, namespace: str, reason: str, word: str) -> None:
        """Waits for an Event: it may come after what it is about. Raises NotSeen, with the reasons that came."""
        found: set[str] = set()
        try:
            async with asyncio.timeout(SECONDS):
                async for item in self._events(namespace):
                    found.add(str(item.get("reason")))
                    if item.get("reason") == reason and word in (item.get("note") or ""):
                        return
        except TimeoutError:
            raise NotSeen(f"Events {sorted(found)}") from None

    async def _events(self, namespace: str) -> AsyncIterator[Object]:
        """Those that are there, then those that come."""
        items, version = await self.api.list(EVENTS, namespace)
        for item in items:
            yield item
        async for event in self.api.watch(
            EVENTS, namespace, resource_version=version, seconds=300, silence=300
        ):
            yield event["object"]

    async def there(self, kind: Kind, name: str, namespace: str | None, holds: Present = bool) -> Object:
        """As `until`, of an object that is there."""
        found = await self.until(kind, name, namespace, lambda obj: obj is not None and holds(obj))
        assert found is not None
        return found

    async def deployment(self, namespace: str, holds: Present = bool) -> Object:
        return await self.there(MODEL_DEPLOYMENTS, "m", namespace, holds)

    async def deployment_after_restart(self, namespace: str, holds: Present) -> Object:
        """As `deployment`, of a subject that was killed: its Lease may have to run out first."""
        found = await self.until(
            MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is not None and holds(obj), seconds=RESTARTED
        )
        assert found is not None
        return found

    async def deployment_soon(self, namespace: str, holds: Present) -> Object:
        """As `deployment`, of what must not happen: it is waited for shortly."""
        found = await self.until(
            MODEL_DEPLOYMENTS, "m", namespace, lambda obj: obj is not None and holds(obj), seconds=QUIET
        )
        assert found is not None
        return found

    async def upstream(self, namespace: str, holds: Present = bool) -> Object:
        return await self.there(self.kind, "m", namespace, holds)

    async def namespace(self) -> str:
        """One of its own."""
        name = f"conformance-{uuid.uuid4().hex[:8]}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self.api.create(NAMESPACES, body, manager=MANAGER)
        self.made.append(name)
        return name

    async def create(
        self, namespace: str, name: str = "m", *, spec: Mapping[str, Any] | None = None, **metadata: Any
    ) -> Object:
        """A ModelDeployment for the subject; the first spec of the cases where none is given."""
        asked = copy.deepcopy(dict(spec or self.spec))
        asked["provider"] = {**(asked.get("provider") or {}), "name": self.provider}
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.MODEL_DEPLOYMENT,
            "metadata": {"name": name, "namespace": namespace, **metadata},
            "spec": asked,
        }
        return await self.api.create(MODEL_DEPLOYMENTS, body, manager=MANAGER)

    async def play(self, namespace: str, case: Case) -> Object:
        """The upstream says what the case says."""
        live = await self.upstream(namespace)
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

    async def running(self, namespace: str, name: str = "m", **metadata: Any) -> Object:
        """A ModelDeployment that serves."""
        await self.create(namespace, name, **metadata)
        await self.play(namespace, self.case("Running"))
        return await self.deployment(namespace, lambda obj: phase(obj) == "Running")

    async def annotate(self, namespace: str, key: str, value: str | None) -> None:
        live = await self.api.get(MODEL_DEPLOYMENTS, "m", namespace)
        held = {**(live["metadata"].get("annotations") or {}), key: value}
        kept = {name: text for name, text in held.items() if text is not None}
        change = [{"op": "add", "path": "/metadata/annotations", "value": kept}]
        await self.api.json_patch(MODEL_DEPLOYMENTS, "m", namespace, change, manager=MANAGER)

    async def delete(self, namespace: str) -> None:
        live = await self.api.get(MODEL_DEPLOYMENTS, "m", namespace)
        await self.api.delete(MODEL_DEPLOYMENTS, "m", namespace, uid=live["metadata"]["uid"])

    def writes(self, namespace: str | None = None) -> list[dict[str, Any]]:
        """Finished writes of the subject, dry runs and Leases apart, oldest first."""
        return [
            entry
            for entry in self.requests()
            if entry["verb"] in ("create", "update", "patch", "delete")
            and "dryRun=All" not in entry["requestURI"]
            and entry["responseStatus"]["code"] < 300
            and (namespace is None or entry.get("objectRef", {}).get("namespace") == namespace)
        ]

    def requests(self) -> list[dict[str, Any]]:
        """All finished requests of the subject. Raises Skipped where the audit log is out of reach."""
        log = self.suite.plane.audit_log
        if log is None:
            raise Skipped("the audit log of a cluster that is not ours is out of reach")
        user = f"system:serviceaccount:{NAMESPACE}:{self.account}"
        return [
            entry
            for entry in requests_by_user(log)
            if entry["stage"] == "ResponseComplete" and entry["user"]["username"] == user
        ]

    async def install_crd(self) -> None:
        if self.crd is not None:
            self.suite.plane.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump(self.crd))
            self.suite.plane.wait_served(self.kind.crd)

    async def remove_crd(self) -> None:
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


def phase(obj: Object | None) -> str:
    return str(((obj or {}).get("status") or {}).get("phase", ""))


def condition(obj: Object | None, type_: str) -> Mapping[str, Any]:
    """The condition of that type, empty where there is none."""
    for item in ((obj or {}).get("status") or {}).get("conditions") or ():
        if item["type"] == type_:
            found: Mapping[str, Any] = item
            return found
    return {}


@contextmanager
def local(
    manifest: Sequence[Object],
    crd: Object | None,
    kind: Kind,
    cases: Cases,
    command: Sequence[str],
    folder: Path,
    providers: Sequence[str] = (),
) -> Iterator[Rig]:
    """A rig on a control plane of its own; the upstream CRD is not installed yet. Raises Unusable, CannotRun."""
    account = account_of(manifest)
    provider = account.removeprefix("kubefoundry-provider-")
    with own_control_plane(folder / "plane") as plane:
        suite = Suite(plane, folder / "suite")
        suite.install_ground()
        suite.start("core")
        environment = {
            "KUBEFOUNDRY_FINALIZER_TIMEOUT": str(TIMEOUT),
            "KUBEFOUNDRY_HEARTBEAT_TIMEOUT": str(TIMEOUT),
        }
        subject = suite.install(provider, environment=environment, documents=manifest)
        if command:
            subject.command = [*command, *subject.command[1:]]
        try:
            with asyncio.Runner() as runner:
                api = Client(credentials.from_kubeconfig(str(plane.kubeconfig)), user_agent=MANAGER)
                runner.run(api.__aenter__())
                try:
                    yield Rig(suite, api, provider, subject, account, kind, crd, cases, runner, providers)
                finally:
                    runner.run(api.__aexit__(None, None, None))
        finally:
            suite.stop()


def account_of(manifest: Sequence[Object]) -> str:
    """The ServiceAccount of the manifest's Deployment. Raises Unusable."""
    found = [document for document in manifest if document.get("kind") == "Deployment"]
    if len(found) != 1:
        raise Unusable(f"the manifest has {len(found)} Deployments: give the one that runs the subject")
    return str(found[0]["spec"]["template"]["spec"].get("serviceAccountName", ""))
