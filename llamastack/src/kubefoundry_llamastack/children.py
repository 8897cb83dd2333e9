"""All children of one CR: applied if they differ, deleted if they are no longer requested."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from kubefoundry_llamastack import (
    dependencies,
    distribution,
    names,
    reasons,
    tool_config_maps,
    workload,
)
from kubefoundry_llamastack.dependencies import Source
from kubefoundry_llamastack.memory import Memories
from kubefoundry_llamastack.model_deployments import Resolved
from kubefoundry_llamastack.ownership import ownership
from kubefoundry_llamastack.render import ca_bundle
from kubefoundry_llamastack.render import children as render
from kubefoundry_llamastack.render.request import Distribution, Settings, owner
from kubefoundry_llamastack.report import Obstacle
from kubefoundry_llamastack.stores import Stores
from kubefoundry_llamastack.tool_config_maps import Tool
from kubefoundry_llamastack.workload import Before, Workload
from kubefoundry_llamastack.write import Conflict, Writer
from kubefoundry_sdk.api.kinds import CONFIG_MAPS, Kind, Object
from kubefoundry_sdk.cluster.client import Client
from kubefoundry_sdk.runtime.refusals import Refused

Event = tuple[Literal["Normal", "Warning"], str, str]

TELLS = {names.SERVICES: reasons.SERVICE_READY, names.CLAIMS: reasons.STORAGE_READY}
"""The condition that reports a child that could not be written; DeploymentReady for all others."""


@dataclass(slots=True)
class Outcome:
    """obstacles: what could not be written, and why. retry: seconds after which to try again."""

    obstacles: list[Obstacle] = field(default_factory=list)
    resolved: list[Resolved] = field(default_factory=list)
    retry: float | None = None
    events: list[Event] = field(default_factory=list)

    def again(self, seconds: float) -> None:
        self.retry = seconds if self.retry is None else min(self.retry, seconds)


class Children:
    """Writes the children of CRs, one reconcile at a time for each."""

    def __init__(
        self,
        client: Client,
        known: Stores,
        settings: Settings,
        tool: Tool,
        memory: Memories,
        now: Callable[[], float],
    ) -> None:
        self._writer = Writer(client, memory)
        self._known = known
        self._settings = settings
        self._tool = tool
        self._now = now
        self._memory = memory

    async def write(self, cr: Distribution, raw_spec: Object) -> Outcome:
        """Brings the children to what the CR requests, as far as possible. Raises ApiError for transient errors."""
        outcome = Outcome()
        config = distribution.read(
            self._known.operator_config.get((self._settings.namespace, names.OPERATOR_CONFIG))
        )
        first: list[tuple[Kind, Object | None]] = [(names.SERVICE_ACCOUNTS, render.service_account(cr))]
        if len(self._known.anyuid):
            first.append((names.ROLE_BINDINGS, render.role_binding(cr)))
        first += [(names.CLAIMS, render.claim(cr)), (names.SERVICES, render.service(cr))]
        for kind, wanted in first:
            if wanted is not None:
                await self._apply(kind, wanted, cr, outcome)
        await self._deployment(cr, raw_spec, config, outcome)
        policy = render.network_policy(cr, self._settings.namespace) if self._closed(cr, config) else None
        rest: tuple[tuple[Kind, Object | None], ...] = (
            (names.AUTOSCALERS, render.autoscaler(cr)),
            (names.DISRUPTION_BUDGETS, render.disruption_budget(cr)),
            (names.NETWORK_POLICIES, policy),
            (names.INGRESSES, render.ingress(cr)),
        )
        for kind, wanted in rest:
            if wanted is not None:
                await self._apply(kind, wanted, cr, outcome)
        await self._remove(cr, {kind for kind, wanted in (*first, *rest) if wanted is not None}, outcome)
        return outcome

    def _closed(self, cr: Distribution, config: distribution.OperatorConfig) -> bool:
        """Whether the CR has a NetworkPolicy: as the flag says or, if that cannot be read, as before."""
        if config.network_policies is not None:
            return config.network_policies
        name = f"{cr.name}{dict(render.OPTIONAL)[names.NETWORK_POLICIES]}"
        return self._known.children[names.NETWORK_POLICIES].get((cr.namespace, name)) is not None

    async def _remove(self, cr: Distribution, kept: set[Kind], outcome: Outcome) -> None:
        for kind, suffix in render.OPTIONAL:
            key = (cr.namespace, f"{cr.name}{suffix}")
            if kind not in kept and await self._writer.delete(kind, self._known.children[kind], key, cr):
                outcome.events.append(
                    ("Normal", "ChildRemoved", f"{kind.kind} '{key[1]}' is no longer requested")
                )

    async def _apply(self, kind: Kind, wanted: Object, cr: Distribution, outcome: Outcome) -> bool:
        """Whether the object exists as wanted."""
        store = self._known.own_config_maps if kind == CONFIG_MAPS else self._known.children[kind]
        try:
            await self._writer.apply(kind, store, wanted, cr, self._now())
        except (Conflict, Refused) as error:
            self._stopped(kind, error, outcome)
            return False
        return True

    def _stopped(self, kind: Kind, error: Conflict | Refused, outcome: Outcome) -> None:
        type_ = TELLS.get(kind, reasons.DEPLOYMENT_READY)
        reason = "NameConflict" if isinstance(error, Conflict) else "ApplyRejected"
        if type_ == reasons.SERVICE_READY and isinstance(error, Refused):
            reason = "ServiceFailed"
        elif type_ == reasons.STORAGE_READY:
            reason = "StorageFailed"
        outcome.obstacles.append(Obstacle(type_, reason, str(error)))
        if isinstance(error, Refused):
            outcome.again(error.retry)

    async def _deployment(
        self, cr: Distribution, raw_spec: Object, config: distribution.OperatorConfig, outcome: Outcome
    ) -> None:
        store = self._known.deployments
        try:
            live = self._writer.ours(names.DEPLOYMENTS, store, (cr.namespace, cr.name), cr)
        except Conflict as error:
            self._stopped(names.DEPLOYMENTS, error, outcome)
            live = None
        record = workload.recorded(
            self._known.own_config_maps.get((cr.namespace, f"{cr.name}{workload.RECORD}"))
        )
        before_ca = self._known.own_config_maps.get((cr.namespace, f"{cr.name}-ca-bundle"))
        text = await self._certificates(cr, outcome)
        ca_digest = workload.digest(text) if text else None
        latched = workload.latched(cr, live)
        found = dependencies.find(cr, self._known, config, latched, ca_digest, self._tool.name(cr.name))
        outcome.resolved = found.resolved
        outcome.obstacles += found.obstacles
        if outcome.obstacles and any(item.type == reasons.DEPLOYMENT_READY for item in outcome.obstacles):
            return
        assert found.found is not None
        if text and not await self._apply(CONFIG_MAPS, ca_bundle.config_map(cr, text), cr, outcome):
            return
        made_from = workload.inputs(cr, found.found, found.image_override, raw_spec)
        stands = text is None or (before_ca is not None and before_ca.get("data") == {ca_bundle.KEY: text})
        tools = {*self._tools(cr), self._tool.name(cr.name)}
        before = Before(found.user_config_version, stands, tools)
        decided = workload.decide(cr, found.found, self._settings, made_from, live, record, before)
        mounted = workload.tool_of(decided.body["spec"]["template"])
        missing = mounted == self._tool.name(cr.name) and mounted not in self._tools(cr)
        if missing and not await self._apply(CONFIG_MAPS, self._tool.config_map(cr), cr, outcome):
            return
        # Before the Deployment: the next reconcile repairs a crash between the two.
        if await self._apply(CONFIG_MAPS, workload.record_map(cr, decided.record), cr, outcome):
            await self._roll_out(cr, decided, live, outcome)
        await self._clean(cr, text, decided, outcome)

    async def _roll_out(
        self,
        cr: Distribution,
        decided: Workload,
        live: Object | None,
        outcome: Outcome,
    ) -> None:
        store, kind = self._known.deployments, names.DEPLOYMENTS
        memory = self._memory((cr.namespace, cr.name))
        if decided.adopt and live is not None:
            live = await self._writer.take_over(kind, store, live, cr, adoption(cr, live))
            outcome.events.append(
                ("Normal", "TakenOver", f"Deployment '{cr.name}' is adopted without a change")
            )
        if not decided.write:
            return
        digest = workload.digest(json.dumps(decided.body, sort_keys=True))
        # Applied again without a change of ours: somebody has changed the live object.
        drift = live is not None and memory.applied == digest
        if drift and (wait := memory.repairs.wait(self._now())):
            # Somebody else keeps writing it: retrying at every event would be a loop.
            outcome.again(wait)
            return
        try:
            await self._writer.put(kind, store, decided.body, live, cr, self._now(), exact=True)
        except (Conflict, Refused) as error:
            self._stopped(kind, error, outcome)
            return
        memory.applied = digest
        if drift:
            memory.repairs.note(self._now())
        if decided.template_changed:
            for _, item in cr.spec.providers():
                note = f"Injecting provider {item.provider_id} from image {item.image}"
                outcome.events.append(("Normal", "InjectingProvider", note))

    async def _clean(self, cr: Distribution, text: str | None, decided: Workload, outcome: Outcome) -> None:
        """Deletes our ConfigMaps that no pod template mounts any more."""
        store = self._known.own_config_maps
        if text is None and await self._writer.delete(
            CONFIG_MAPS, store, (cr.namespace, f"{cr.name}-ca-bundle"), cr
        ):
            outcome.events.append(("Normal", "ChildRemoved", "The CA bundle is no longer requested"))
        existing = self._tools(cr)
        if not existing:
            return
        live = self._known.deployments.get((cr.namespace, cr.name))
        sets = (
            self._known.replica_sets.indexed(live["metadata"]["uid"], namespace=cr.namespace) if live else []
        )
        templates = [decided.body["spec"]["template"], *(item["spec"]["template"] for item in sets)]
        for name in tool_config_maps.unused(existing, templates):
            await self._writer.delete(CONFIG_MAPS, store, (cr.namespace, name), cr)

    def _tools(self, cr: Distribution) -> list[str]:
        """Names of the CR's ConfigMaps with a tool."""
        return [
            name
            for namespace, name in self._known.own_config_maps.keys()  # noqa: SIM118 (a Store is no dict)
            if namespace == cr.namespace
            and tool_config_maps.cr_of(name) == cr.name
            and (live := self._known.own_config_maps.get((namespace, name))) is not None
            and ownership(live, cr.uid) == "ours"
        ]

    async def _certificates(self, cr: Distribution, outcome: Outcome) -> str | None:
        """The PEM text to mount, None if there is none. Read from the API server only after a change."""
        source = dependencies.ca_source(cr, self._known)
        if isinstance(source, Obstacle):
            outcome.obstacles.append(source)
            return None
        if source is None:
            return None
        memory = self._memory((cr.namespace, cr.name))
        known = memory.bundle
        if known is None or known[0] != source.digest:
            known = (source.digest, await self._read(cr, source, outcome))
            if not any(item.reason == "ConfigMapInvalid" for item in outcome.obstacles):
                memory.bundle = known
        return known[1] or None

    async def _read(self, cr: Distribution, source: Source, outcome: Outcome) -> str:
        """Raises ApiError also if it was just deleted: the next event decides again."""
        try:
            live = await self._writer.client.get(CONFIG_MAPS, source.config_map, cr.namespace)
            return ca_bundle.bundle(
                live.get("data") or {}, source.keys, source.config_map, given=source.given
            )
        except ca_bundle.Unusable as error:
            outcome.obstacles.append(Obstacle(reasons.DEPLOYMENT_READY, "ConfigMapInvalid", str(error)))
        return ""


def adoption(cr: Distribution, live: Object) -> list[Object]:
    """What the JSON patch of an adoption adds: a lost owner."""
    if any(item.get("controller") for item in live["metadata"].get("ownerReferences") or ()):
        return []
    return [{"op": "add", "path": "/metadata/ownerReferences", "value": [owner(cr)]}]
