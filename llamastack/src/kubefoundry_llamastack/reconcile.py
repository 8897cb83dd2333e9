"""Reconciles one LlamaStackDistribution: observe, decide, write the differences, report.

The order of the checks: deleted, being deleted, paused, refused, another operator. Then children are applied,
those no longer requested are deleted, and the status is written. An obstacle to writing the Deployment does
not end the reconcile: the status is always reported.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import ValidationError

from kubefoundry_llamastack import (
    checks,
    coexistence,
    degradation,
    installed_schema,
    names,
    reasons,
    report,
    storage,
)
from kubefoundry_llamastack.api.spec import Spec
from kubefoundry_llamastack.children import Children
from kubefoundry_llamastack.memory import Memory
from kubefoundry_llamastack.names import DEPLOYMENTS, LLSD, MANAGER
from kubefoundry_llamastack.observe import pods as observed
from kubefoundry_llamastack.observe.deployments import counts
from kubefoundry_llamastack.observe.own_pods import OwnPods
from kubefoundry_llamastack.ownership import ownership
from kubefoundry_llamastack.reasons import condition
from kubefoundry_llamastack.render import provider_deployment
from kubefoundry_llamastack.render.children import SUFFIXES
from kubefoundry_llamastack.render.request import Distribution, Settings
from kubefoundry_llamastack.snapshot import Answer, Obstacle, Snapshot
from kubefoundry_llamastack.stores import Stores
from kubefoundry_llamastack.tool_config_maps import Tool
from kubefoundry_sdk._api import managed_fields, spec_limits
from kubefoundry_sdk._api import names as shared
from kubefoundry_sdk._api.conditions import find, rfc3339
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.logs import described
from kubefoundry_sdk._runtime import status
from kubefoundry_sdk._runtime.recorder import Recorder
from kubefoundry_sdk._runtime.store import Key

INTERNAL: Final = (
    "The operator failed with an internal error: {}; what runs is left as it is; retrying with back-off, the "
    "operator's log has more"
)

UNSTABLE_RECHECK: Final = 300.0
"""Seconds between two checks whether ServerStable may end: it ends an hour after the last start, without an event."""


@dataclass(slots=True)
class Operator:
    """Reconciles CRs with these dependencies.

    Attributes:
        client: Client of the API server.
        recorder: Records Events.
        stores: The watched objects.
        settings: The operator's own configuration.
        tool: The zipapp of this operator.
        version: The operator's version.
        answer: Returns the last answer of a CR's server, requested in the background.
        now: Monotonic clock, in seconds.
        children: Writes the children.
        memories: Memory of each CR.
    """

    client: Client
    recorder: Recorder
    stores: Stores
    settings: Settings
    tool: Tool
    version: str
    answer: Callable[[Key], Answer | None]
    now: Callable[[], float] = time.monotonic
    children: Children = field(init=False)
    memories: dict[Key, Memory] = field(default_factory=lambda: defaultdict(Memory))

    def __post_init__(self) -> None:
        self.children = Children(
            self.client, self.stores, self.settings, self.tool, self.memories.__getitem__, self.now
        )

    async def reconcile(self, key: Key) -> float | None:
        """Reconcile the CR once.

        Returns:
            Seconds until the next reconcile, None to wait for an event.
        """
        live = self.stores.distributions.get(key)
        if live is None:
            self.memories.pop(key, None)
            return None
        # Before these are listed, nothing is known about ModelDeployments, our fields and adoptions.
        stores = self.stores
        if not (stores.model_deployments.settled and stores.definition.settled and stores.successors.settled):
            return None
        meta = live["metadata"]
        if meta.get("deletionTimestamp"):
            await self._update_status(live, {"phase": "Terminating"})
            return None
        if (meta.get("annotations") or {}).get(shared.PAUSED_ANNOTATION) == "true":
            text = f"reconciliation paused; remove the annotation {shared.PAUSED_ANNOTATION} to resume"
            await self._update_status(
                live,
                {},
                condition(reasons.PAUSED, True, "ReconcilePaused", text, generation=meta["generation"]),
            )
            return None
        # Readers recurse, so a spec that is nested too deeply is rejected before it is read.
        if too_deep := spec_limits.too_deep(live.get("spec")):
            text = f"{' '.join(too_deep)} and apply the LlamaStackDistribution again"
            await self._report_failure(key, live, "InvalidSpec", text)
            return None
        try:
            cr = read(live)
        except ValidationError as error:
            await self._report_failure(key, live, "InvalidSpec", describe_invalid(error))
            return None
        if await self._is_left_alone(cr, live):
            return None
        try:
            return await self._reconcile_children(cr, live)
        except (ApiError, Unreachable):
            # The queue retries it; the API server's errors are not internal.
            raise
        except Exception as error:
            await self._report_failure(key, live, "InternalError", INTERNAL.format(described(error)))
            raise

    async def _is_left_alone(self, cr: Distribution, live: Object) -> bool:
        """Check whether another operator forbids all writes, and report it."""
        definition = self.stores.definition.definition
        memory = self.memories[cr.namespace, cr.name]
        if conflict := coexistence.find_conflict(cr, self._deployment(cr, cr.name), definition, memory):
            await self._report_other_operator(live, conflict)
            return True
        children = {
            kind: child
            for kind, suffix in SUFFIXES.items()
            if (child := self.stores.children[kind].get((cr.namespace, f"{cr.name}{suffix}"))) is not None
        }
        servers = self.stores.successors.objects.objects()
        if successor := coexistence.find_successor(cr, servers, children):
            # It takes the pods away, which the rest of the status reports.
            await self._report(cr, live, [successor], [])
            return True
        return False

    async def _reconcile_children(self, cr: Distribution, live: Object) -> float | None:
        retry: float | None = None
        obstacles: list[Obstacle] = []
        resolved = []
        if refusal := checks.refusal(cr, self.settings):
            obstacles = build_obstacles(cr, refusal)
        else:
            outcome = await self.children.write(cr, live["spec"])
            obstacles, resolved, retry = outcome.obstacles, outcome.resolved, outcome.retry
            for type_, reason, note in outcome.events:
                self.recorder.event(live, type_, reason, note)
        recheck = await self._report(cr, live, obstacles, resolved)
        return min((seconds for seconds in (retry, recheck) if seconds is not None), default=None)

    async def _report(
        self, cr: Distribution, live: Object, obstacles: list[Obstacle], resolved: list[Any]
    ) -> float | None:
        """Write the status. Return the seconds after which time alone changes it."""
        server = self._observe(cr, cr.name)
        own_pods = {item.provider_id: self._observe(cr, item.name) for item in provider_deployment.of(cr)}
        child_stores = self.stores.children
        snapshot = Snapshot(
            cr,
            server.live,
            server.newest,
            server.pods,
            tuple(obstacles),
            resolved,
            self.answer((cr.namespace, cr.name)),
            shared=self._shared_claims(cr, live),
            claim=child_stores[names.CLAIMS].get((cr.namespace, f"{cr.name}-pvc")),
            service=child_stores[names.SERVICES].get((cr.namespace, f"{cr.name}-service")),
            ingress=child_stores[names.INGRESSES].get((cr.namespace, f"{cr.name}-ingress")),
            operator_version=self.version,
            own_pods=own_pods,
        )
        before = live.get("status") or {}
        now = _now()
        new_status = report.status(snapshot, before, now)
        await self._write(live, installed_schema.fitting(new_status, self.stores.definition.definition))
        return seconds_to_change(new_status, now)

    def _observe(self, cr: Distribution, name: str) -> OwnPods:
        """Return the CR's Deployment of that name, with its newest ReplicaSet and pods."""
        live = self._deployment(cr, name)
        newest = observed.newest(self.stores.replica_sets_of(live), live["metadata"]["uid"]) if live else None
        if newest is None:
            return OwnPods(live)
        pods = self.stores.pods.indexed(newest["metadata"]["uid"], namespace=cr.namespace)
        return OwnPods(live, newest, observed.live_pods(pods, newest))

    def _shared_claims(self, cr: Distribution, live: Object) -> dict[str, str]:
        if not storage.written_claims(cr.name, live):
            return {}
        return storage.shared_claims(cr.name, self.stores.distributions_in(cr.namespace))

    def _deployment(self, cr: Distribution, name: str) -> Object | None:
        live = self.stores.children[DEPLOYMENTS].get((cr.namespace, name))
        return live if live and ownership(live, cr.uid) == "ours" else None

    async def _report_failure(self, key: Key, live: Object, reason: str, text: str) -> None:
        """Report a CR that is unreadable (stored before the CRD had its current rules) or failed.

        Running pods keep serving.
        """
        generation = live["metadata"]["generation"]
        failed = condition(reasons.DEPLOYMENT_READY, False, reason, text, generation=generation)
        is_serving = counts(self.stores.deployments.get(key)).enough
        await self._update_status(live, {} if is_serving else {"phase": "Failed"}, failed)

    async def _report_other_operator(self, live: Object, conflict: Obstacle) -> None:
        """Report the other operator once, and write nothing that it would overwrite."""
        conditions = (live.get("status") or {}).get("conditions") or ()
        if any(
            item.get("type") == conflict.type and item.get("reason") == conflict.reason for item in conditions
        ):
            return
        generation = live["metadata"]["generation"]
        reported = condition(conflict.type, False, conflict.reason, conflict.message, generation=generation)
        await self._update_status(live, {}, reported)

    async def _update_status(self, live: Object, fields: Mapping[str, Any], *changed: Object) -> None:
        """Write these fields and conditions, and keep all others that are ours."""
        owned = managed_fields.owned(live, MANAGER, "status") or {}
        current = (
            managed_fields.project(live.get("status") or {}, owned["f:status"]) if "f:status" in owned else {}
        )
        conditions = {item["type"]: item for item in current.get("conditions") or ()}
        # The write sets the times of conditions that change, and keeps all others.
        for item in conditions.values():
            item.pop("lastTransitionTime", None)
        conditions |= {item["type"]: item for item in changed}
        await self._write(live, {**current, **fields, "conditions": list(conditions.values())})

    async def _write(self, live: Object, new_status: Object) -> None:
        try:
            written = await status.write(
                self.client, self.stores.distributions, LLSD, live, new_status, manager=MANAGER
            )
        except ApiError as error:
            if error.not_found:
                # The CR was deleted meanwhile.
                return
            raise
        if written:
            for good, reason, note in report.announcements(live.get("status") or {}, new_status):
                self.recorder.event(live, "Normal" if good else "Warning", reason, note)


def read(live: Object) -> Distribution:
    """Return the typed view of a stored CR.

    Raises:
        ValidationError: The spec is invalid.
    """
    meta = live["metadata"]
    return Distribution(
        name=meta["name"],
        namespace=meta["namespace"],
        uid=meta["uid"],
        generation=meta["generation"],
        spec=Spec.model_validate(live.get("spec") or {}),
        annotations=meta.get("annotations") or {},
    )


def build_obstacles(cr: Distribution, text: str) -> list[Obstacle]:
    """Return the obstacles of a CR that requests something impossible."""
    obstacles = [Obstacle(reasons.DEPLOYMENT_READY, "InvalidSpec", text)]
    if "is used twice" in text:
        obstacles.append(Obstacle(reasons.PROVIDERS_READY, report.DUPLICATE, text))
    return obstacles


def describe_invalid(error: ValidationError) -> str:
    """Describe the first problem of a spec in one line."""
    first = error.errors()[0]
    place = ".".join(str(step) for step in first["loc"])
    return f"spec.{place}: {first['msg']}; correct it and apply the LlamaStackDistribution again"


def seconds_to_change(status: Mapping[str, Any], now: str) -> float | None:
    """Return the seconds after which time alone may change this status at this time, None if it never does."""
    unstable = UNSTABLE_RECHECK if find(status["conditions"], reasons.SERVER_STABLE) else None
    waits = (unstable, degradation.seconds_to_change(status, now))
    return min((wait for wait in waits if wait is not None), default=None)


def _now() -> str:
    return rfc3339(datetime.now(UTC))
