"""One reconcile of a LlamaStackDistribution: look, decide, write what differs, report.

The order: deleted, being deleted, paused, refused, another operator, children, what is no longer requested, status.
An obstacle to writing the Deployment does not end the reconcile: the status is always reported.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import ValidationError

from kubefoundry_llamastack import checks, coexistence, names, reasons, report
from kubefoundry_llamastack.api.spec import Spec
from kubefoundry_llamastack.children import Children
from kubefoundry_llamastack.memory import Memory
from kubefoundry_llamastack.names import DEPLOYMENTS, LLSD, MANAGER
from kubefoundry_llamastack.observe import pods as observed
from kubefoundry_llamastack.observe.deployments import counts
from kubefoundry_llamastack.ownership import ownership
from kubefoundry_llamastack.reasons import condition
from kubefoundry_llamastack.render.request import Distribution, Settings
from kubefoundry_llamastack.report import Answer, Obstacle, Seen
from kubefoundry_llamastack.stores import Stores
from kubefoundry_llamastack.tool_config_maps import Tool
from kubefoundry_sdk.api import extent, managed_fields
from kubefoundry_sdk.api import names as shared
from kubefoundry_sdk.api.conditions import rfc3339
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable
from kubefoundry_sdk.runtime import status
from kubefoundry_sdk.runtime.logs import described
from kubefoundry_sdk.runtime.recorder import Recorder
from kubefoundry_sdk.runtime.store import Key

INTERNAL: Final = (
    "The operator failed with an internal error: {}; what runs is left as it is; retrying with back-off, the "
    "operator's log has more"
)


@dataclass(slots=True)
class Operator:
    """What a reconcile works with. answer: what a CR's server last said, requested in the background."""

    client: Client
    recorder: Recorder
    known: Stores
    settings: Settings
    tool: Tool
    version: str
    answer: Callable[[Key], Answer | None]
    now: Callable[[], float] = time.monotonic
    children: Children = field(init=False)
    memories: dict[Key, Memory] = field(default_factory=lambda: defaultdict(Memory))

    def __post_init__(self) -> None:
        self.children = Children(
            self.client, self.known, self.settings, self.tool, self.memories.__getitem__, self.now
        )

    async def reconcile(self, key: Key) -> float | None:
        """Returns the seconds until the next reconcile, None to wait for an event."""
        live = self.known.distributions.get(key)
        if live is None:
            self.memories.pop(key, None)
            return None
        if not (self.known.model_deployments.settled and self.known.definition.settled):
            return None
        meta = live["metadata"]
        if meta.get("deletionTimestamp"):
            await self._keep(live, {"phase": "Terminating"})
            return None
        if (meta.get("annotations") or {}).get(shared.PAUSED_ANNOTATION) == "true":
            text = f"reconciliation paused; remove the annotation {shared.PAUSED_ANNOTATION} to resume"
            await self._keep(
                live,
                {},
                condition(reasons.PAUSED, True, "ReconcilePaused", text, generation=meta["generation"]),
            )
            return None
        if beyond := extent.too_deep(live.get("spec")):
            text = f"{' '.join(beyond)} and apply the LlamaStackDistribution again"
            await self._stop(key, live, "InvalidSpec", text)
            return None
        try:
            cr = read(live)
        except ValidationError as error:
            await self._stop(key, live, "InvalidSpec", invalid(error))
            return None
        definition = self.known.definition.definition
        if stopped := coexistence.stops(cr, self._deployment(cr), definition, self.memories[key]):
            await self._hands_off(live, stopped)
            return None
        try:
            return await self._turn(cr, live)
        except (ApiError, Unreachable):
            raise
        except Exception as error:
            await self._stop(key, live, "InternalError", INTERNAL.format(described(error)))
            raise

    async def _turn(self, cr: Distribution, live: Object) -> float | None:
        retry: float | None = None
        obstacles: list[Obstacle] = []
        resolved = []
        if refusal := checks.refusal(cr):
            obstacles = refused(cr, refusal)
        else:
            outcome = await self.children.write(cr, live["spec"])
            obstacles, resolved, retry = outcome.obstacles, outcome.resolved, outcome.retry
            for type_, reason, note in outcome.events:
                self.recorder.event(live, type_, reason, note)
        await self._report(cr, live, obstacles, resolved)
        return retry

    async def _report(
        self, cr: Distribution, live: Object, obstacles: list[Obstacle], resolved: list[Any]
    ) -> None:
        deployment = self._deployment(cr)
        newest = None
        pods: list[Object] = []
        if deployment is not None:
            sets = self.known.replica_sets.indexed(deployment["metadata"]["uid"], namespace=cr.namespace)
            newest = observed.newest(sets, deployment["metadata"]["uid"])
        if newest is not None:
            pods = observed.live_pods(
                self.known.pods.indexed(newest["metadata"]["uid"], namespace=cr.namespace), newest
            )
        stores = self.known.children
        seen = Seen(
            cr,
            deployment,
            newest,
            pods,
            tuple(obstacles),
            resolved,
            self.answer((cr.namespace, cr.name)),
            claim=stores[names.CLAIMS].get((cr.namespace, f"{cr.name}-pvc")),
            service=stores[names.SERVICES].get((cr.namespace, f"{cr.name}-service")),
            ingress=stores[names.INGRESSES].get((cr.namespace, f"{cr.name}-ingress")),
            operator_version=self.version,
        )
        before = live.get("status") or {}
        wanted = report.status(seen, before, _now())
        await self._write(live, wanted)

    def _deployment(self, cr: Distribution) -> Object | None:
        found = self.known.children[DEPLOYMENTS].get((cr.namespace, cr.name))
        return found if found and ownership(found, cr.uid) == "ours" else None

    async def _stop(self, key: Key, live: Object, reason: str, text: str) -> None:
        """Reports a CR that cannot be read (stored before the CRD had today's rules) or reconciled. Whatever serves
        keeps serving."""
        generation = live["metadata"]["generation"]
        decided = condition(reasons.DEPLOYMENT_READY, False, reason, text, generation=generation)
        serves = counts(self.known.deployments.get(key)).enough
        await self._keep(live, {} if serves else {"phase": "Failed"}, decided)

    async def _hands_off(self, live: Object, stopped: Obstacle) -> None:
        """Another operator writes: report it once, and write nothing that it would overwrite."""
        conditions = (live.get("status") or {}).get("conditions") or ()
        if any(
            item.get("type") == stopped.type and item.get("reason") == stopped.reason for item in conditions
        ):
            return
        generation = live["metadata"]["generation"]
        decided = condition(stopped.type, False, stopped.reason, stopped.message, generation=generation)
        await self._keep(live, {}, decided)

    async def _keep(self, live: Object, fields: Mapping[str, Any], *decided: Object) -> None:
        """Writes these fields and conditions, and keeps all others that are ours."""
        owned = managed_fields.owned(live, MANAGER, "status") or {}
        standing = (
            managed_fields.project(live.get("status") or {}, owned["f:status"]) if "f:status" in owned else {}
        )
        conditions = {item["type"]: item for item in standing.get("conditions") or ()}
        for item in conditions.values():
            item.pop("lastTransitionTime", None)
        conditions |= {item["type"]: item for item in decided}
        await self._write(live, {**standing, **fields, "conditions": list(conditions.values())})

    async def _write(self, live: Object, wanted: Object) -> None:
        try:
            written = await status.write(
                self.client, self.known.distributions, LLSD, live, wanted, manager=MANAGER
            )
        except ApiError as error:
            if error.not_found:
                return
            raise
        if written:
            for good, reason, note in report.announcements(live.get("status") or {}, wanted):
                self.recorder.event(live, "Normal" if good else "Warning", reason, note)


def read(live: Object) -> Distribution:
    """The typed view of a stored CR. Raises pydantic's ValidationError."""
    meta = live["metadata"]
    return Distribution(
        name=meta["name"],
        namespace=meta["namespace"],
        uid=meta["uid"],
        generation=meta["generation"],
        spec=Spec.model_validate(live.get("spec") or {}),
        annotations=meta.get("annotations") or {},
    )


def refused(cr: Distribution, text: str) -> list[Obstacle]:
    """The report for a CR that requests something impossible."""
    made = [Obstacle(reasons.DEPLOYMENT_READY, "InvalidSpec", text)]
    if "is used twice" in text:
        made.append(Obstacle(reasons.PROVIDERS_READY, report.DUPLICATE, text))
    return made


def invalid(error: ValidationError) -> str:
    """The first problem of a spec, in one line."""
    first = error.errors()[0]
    place = ".".join(str(step) for step in first["loc"])
    return f"spec.{place}: {first['msg']}; correct it and apply the LlamaStackDistribution again"


def _now() -> str:
    return rfc3339(datetime.now(UTC))
