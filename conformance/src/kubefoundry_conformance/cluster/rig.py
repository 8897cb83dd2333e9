"""The environment of the checks of a process: an API server, the subject, and a simulated upstream."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubefoundry_conformance.cases import Cases
from kubefoundry_conformance.check import Check, Finding, Skipped
from kubefoundry_conformance.cluster.deployments import Deployments, Place
from kubefoundry_conformance.cluster.manifest import Rule
from kubefoundry_conformance.cluster.settings import MANAGER, MARK
from kubefoundry_conformance.cluster.waiting import NotSeen, Present, condition
from kubefoundry_local.audit_log import FinishedRequests
from kubefoundry_local.suite import Component, Suite
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import CRDS, PROVIDER_CONFIGS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable


@dataclass(slots=True)
class Rig(Deployments):
    """The environment of the checks.

    Attributes:
        api: The client of an administrator.
        provider: The name of the subject if it is a provider.
        subject: The process.
        account: The subject's ServiceAccount.
        system: The namespace of the subject's ServiceAccount and Lease.
        namespace: The namespace of the checks.
        kind: The upstream kind in its stored version.
        crd: The upstream CRD, None for a kind of Kubernetes.
        cases: The author's cases.
        runner: Runs the coroutines of the checks.
        rules: The permissions that the manifest grants to the subject.
        suite: Core and the local control plane; None in a running cluster.
        providers: The providers that the checks of a selector register.
        cluster_objects: The objects that the checks created outside of the namespace, oldest first.
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
    suite: Suite | None = None
    providers: Sequence[str] = ()
    cluster_objects: list[tuple[Kind, Object]] = field(default_factory=list)
    _requests: FinishedRequests | None = field(default=None, init=False)

    def check(
        self, coroutine: Callable[[Rig], Coroutine[Any, Any, Finding | None]], expected: str
    ) -> Iterable[Finding]:
        """Run the coroutine of a check. A wait without success and a refused request are violations, too."""
        try:
            finding = self.runner.run(coroutine(self))
        except NotSeen as error:
            finding = Finding(str(error), expected)
        except (ApiError, Unreachable) as error:
            finding = Finding(f"the API server refuses what the check does: {error}", expected)
        return [finding] if finding else []

    @property
    def manager(self) -> str:
        """Return the subject's field manager."""
        return names.provider_manager(self.provider)

    @property
    def finalizer(self) -> str:
        """Return the subject's finalizer."""
        return names.provider_finalizer(self.provider)

    async def add(self, kind: Kind, body: Object) -> Object:
        """Create an object outside of the namespace, and record it for removal.

        If the call is cancelled, it waits for the answer of the API server. Otherwise an object that was created
        without an answer would never be removed.

        Raises:
            ApiError: The object exists, or cannot be created.
        """
        meta = {
            **body["metadata"],
            "labels": {**(body["metadata"].get("labels") or {}), MARK: self.namespace},
        }

        async def create() -> Object:
            created = await self.api.create(kind, {**body, "metadata": meta}, manager=MANAGER)
            self.cluster_objects.append((kind, created))
            return created

        request = asyncio.create_task(create())
        try:
            return await asyncio.shield(request)
        finally:
            await asyncio.wait([request])

    def writes(self, place: Place) -> list[dict[str, Any]]:
        """Return the subject's finished writes to objects with the place's name, without dry runs, oldest first."""
        return [
            entry
            for entry in self.requests()
            if entry["verb"] in ("create", "update", "patch", "delete")
            and "dryRun=All" not in entry["requestURI"]
            and entry["responseStatus"]["code"] < 300
            and str(entry.get("objectRef", {}).get("name", "")).startswith(place.name)
        ]

    def requests(self) -> list[dict[str, Any]]:
        """Return all finished requests of the subject.

        Raises:
            Skipped: The audit log cannot be read.
        """
        log = self.own("the audit log of a cluster that others use cannot be read").plane.audit_log
        assert log is not None
        if self._requests is None:
            self._requests = FinishedRequests(log, f"system:serviceaccount:{self.system}:{self.account}")
        return self._requests.until_now()

    def own(self, why: str) -> Suite:
        """Return the suite of the local control plane.

        Args:
            why: The reason why the check needs a cluster of its own.

        Raises:
            Skipped: The cluster is not the kit's own. The message has the reason.
        """
        if self.suite is None:
            raise Skipped(f"not run, because {why}")
        return self.suite

    async def stop(self) -> int | None:
        """Stop the subject, and return its exit code, or None if it had to be killed. PRO-2 reports a kill."""
        try:
            return await asyncio.to_thread(self.subject.stop)
        except subprocess.TimeoutExpired:
            return None

    async def install_crd(self) -> None:
        """Install the upstream CRD, and wait until it is established.

        Raises:
            ApiError: The CRD exists.
        """
        if self.crd is not None:
            meta = {
                "annotations": self.crd["metadata"].get("annotations") or {},
                "name": self.kind.crd,
            }
            await self.add(CRDS, {**self.crd, "metadata": meta})
            await self.there(
                CRDS, self.kind.crd, None, lambda obj: condition(obj, "Established").get("status") == "True"
            )

    async def remove_crd(self) -> None:
        """Remove the upstream CRD.

        Raises:
            Skipped: The cluster is not the kit's own, or the kind is part of Kubernetes.
        """
        self.own("others may have objects of the kind whose CRD would be removed")
        if self.crd is None:
            raise Skipped("the upstream kind is part of Kubernetes")
        live = await self.api.get(CRDS, self.kind.crd)
        await self.api.delete(CRDS, self.kind.crd, None, uid=live["metadata"]["uid"])
        await self.until(CRDS, self.kind.crd, None, lambda obj: obj is None)

    async def registered(self, holds: Present = bool) -> Object:
        """Wait for the subject's InferenceProviderConfig, and return it.

        Raises:
            NotSeen: `holds` was true of no state in time.
        """
        return await self.there(PROVIDER_CONFIGS, self.provider, None, holds)


def of_rig(
    rule: str, title: str, coroutine: Callable[[Rig], Coroutine[Any, Any, Finding | None]], expected: str
) -> Check[Rig]:
    """Build a check from a coroutine.

    Args:
        rule: The id of the rule.
        title: The check's scenario in a few words, for the report.
        coroutine: The check.
        expected: The expectation of the waits in the coroutine.
    """
    return Check(rule, title, lambda rig: rig.check(coroutine, expected))
