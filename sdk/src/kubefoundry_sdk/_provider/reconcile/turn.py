"""One reconcile of a ModelDeployment: the state that its steps share, and how a step ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property

from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._provider.contract import Deployment, Provider, Rendered
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.memory import Memory
from kubefoundry_sdk._provider.reconcile.report import Report, Stop
from kubefoundry_sdk._provider.upstream_kind import Schema
from kubefoundry_sdk._provider.write.manifest import LastRecord, Record
from kubefoundry_sdk._provider.write.plan import Plan
from kubefoundry_sdk._runtime.store import Key
from kubefoundry_sdk._runtime.wait import sooner


@dataclass(frozen=True, slots=True)
class End:
    """The end of the sequence of steps.

    Attributes:
        retry: Seconds until the next reconcile is due without an event, or None.
        reports: Whether the steps after the writes still run, which observe the upstream object and write the status.
            False if the step has written the status itself, or leaves it unchanged.
    """

    retry: float | None = None
    reports: bool = True


@dataclass(repr=False, eq=False)
class Turn:
    """One reconcile. The step in parentheses sets the attribute, and later steps read it.

    Attributes:
        context: The state that all reconciles of the provider share.
        key: Namespace and name of the ModelDeployment.
        retry: Seconds until the next reconcile is due without an event, or None.
        exists: Whether the ModelDeployment exists. If not, `live` is unset, and step 1 ends the turn.
        live: The version of the ModelDeployment that the steps use. Only `refresh` replaces it, because a change by
            somebody else starts another turn.
        upstream: The upstream object on which the writes are based, None if there is none (`wait_for_retry`).
        mark: The digest of the state; a change of it causes an immediate retry (`wait_for_retry`).
        provider: The provider without the labels that wait for an edit (`check_compatibility`).
        deployment: The typed ModelDeployment (`require_validation`), with the image that serves
            (`check_compatibility`).
        record: The record of the last apply, None if there is none (`check_compatibility`).
        last_record: Reads the record of the upstream object.
        schema: The schema of the upstream CRD (`require_crd`).
        kind: The upstream kind (`require_crd`).
        rendered: The output of the provider's `render` (`render`).
        helpers: The live helpers (`plan_changes`).
        plan: The objects to write (`plan_changes`).
        digest: Identifies the objects of the plan and the CRD (`wait_after_refusal`); empty until then.
    """

    context: Context
    key: Key
    retry: float | None = None
    exists: bool = field(init=False)
    live: Object = field(init=False)
    upstream: Object | None = None
    mark: str = ""
    provider: Provider = field(init=False)
    deployment: Deployment = field(init=False)
    record: Record | None = None
    last_record: LastRecord = field(default_factory=LastRecord)
    schema: Schema = field(init=False)
    kind: Kind = field(init=False)
    rendered: Rendered = field(init=False)
    helpers: list[Object] = field(default_factory=list)
    plan: Plan = field(init=False)
    digest: str = ""

    def __post_init__(self) -> None:
        live = self.context.deployments.get(self.key)
        self._state = self.context.deployments.state(self.key)
        self.exists = live is not None
        if live is not None:
            self.live = live
            logs.read(live)
            self.context.forget_earlier(self.key, live["metadata"]["uid"])

    @cached_property
    def report(self) -> Report:
        """The results of the steps, for the generation that was current when the report was first used."""
        return Report(generation=self.live["metadata"]["generation"])

    @property
    def memory(self) -> Memory:
        """The memory of the ModelDeployment, created at the first use."""
        return self.context.memory(self.key)

    @property
    def is_ours(self) -> bool:
        """Whether this provider is the chosen one."""
        return LiveModelDeployment(self.live).provider_name == self.context.provider.name

    @property
    def is_deleted(self) -> bool:
        """Whether the ModelDeployment is being deleted."""
        return LiveModelDeployment(self.live).is_deleting

    @property
    def version(self) -> str:
        """The resource version of the upstream object, empty if there is none."""
        return str(self.upstream["metadata"]["resourceVersion"]) if self.upstream else ""

    @property
    def now(self) -> float:
        """Seconds by the event loop's clock, for delays of this process."""
        return asyncio.get_running_loop().time()

    def refresh(self) -> bool:
        """Take the newest version of a ModelDeployment of ours, after a write of ours.

        Returns:
            False if the ModelDeployment is gone, another one has its name, or another provider is chosen meanwhile.
            The event of that change starts the next turn.
        """
        state = self.context.deployments.state(self.key)
        if state == self._state:
            return True
        newest = self.context.deployments.get(self.key)
        if newest is None or newest["metadata"]["uid"] != self.live["metadata"]["uid"]:
            return False
        self.live, self._state = newest, state
        return self.is_ours

    def retry_in(self, seconds: float | None) -> None:
        """Make the next reconcile due in that many seconds, unless it is due sooner."""
        self.retry = sooner(self.retry, seconds)

    def stop(self, stop: Stop) -> End:
        """Report the obstacle, and end the writing."""
        self.report.stop = stop
        return End(stop.retry)


Step = Callable[[Turn], Awaitable[End | None]]
"""A step of contract §4: returns None to go on with the next one. Its docstring is the text of the contract."""
