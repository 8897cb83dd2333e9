"""Applies the children of a CR if they differ, and deletes those that are no longer requested."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from kubefoundry_llamastack import (
    dependencies,
    distribution,
    kubernetes_release,
    names,
    reasons,
    template_inputs,
    tool_config_maps,
    workload,
)
from kubefoundry_llamastack.dependencies import Source
from kubefoundry_llamastack.memory import Memories
from kubefoundry_llamastack.observe import deployments, pods
from kubefoundry_llamastack.outcome import Outcome
from kubefoundry_llamastack.ownership import controller_of, ownership
from kubefoundry_llamastack.provider_children import ProviderChildren
from kubefoundry_llamastack.render import ca_bundle, sidecars
from kubefoundry_llamastack.render import children as render
from kubefoundry_llamastack.render.request import Distribution, Settings, owner
from kubefoundry_llamastack.snapshot import Obstacle
from kubefoundry_llamastack.stores import Stores
from kubefoundry_llamastack.tool_config_maps import Tool
from kubefoundry_llamastack.workload import PreviousState, Workload
from kubefoundry_llamastack.write import Conflict, Writer
from kubefoundry_sdk._api import server_release
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, Kind, Object
from kubefoundry_sdk._api.server_release import Release
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._runtime.refusals import Refused

CONDITIONS = {names.SERVICES: reasons.SERVICE_READY, names.CLAIMS: reasons.STORAGE_READY}
"""The condition that reports a child that could not be written. All others are in DeploymentReady."""


class Children:
    """Writes the children of CRs, one reconcile at a time for each."""

    def __init__(
        self,
        client: Client,
        stores: Stores,
        settings: Settings,
        tool: Tool,
        memory: Memories,
        now: Callable[[], float],
    ) -> None:
        self._writer = Writer(client, memory)
        self._stores = stores
        self._settings = settings
        self._tool = tool
        self._now = now
        self._memory = memory
        self._release: Release | None = None
        self._provider_children = ProviderChildren(self._writer, stores, memory, now)

    async def write(self, cr: Distribution, raw_spec: Object) -> Outcome:
        """Bring the children to the state that the CR requests, as far as possible.

        Raises:
            ApiError: A transient error of the API server.
        """
        outcome = Outcome()
        config = distribution.read(
            self._stores.operator_config.get((self._settings.namespace, names.OPERATOR_CONFIG)),
            self._settings.mirror,
        )
        # The pods need these, so they come before the Deployment.
        first: list[tuple[Kind, Object | None]] = [(names.SERVICE_ACCOUNTS, render.service_account(cr))]
        if len(self._stores.anyuid):
            first.append((names.ROLE_BINDINGS, render.role_binding(cr)))
        first += [(names.CLAIMS, render.claim(cr)), (names.SERVICES, render.service(cr))]
        for kind, manifest in first:
            if manifest is not None:
                await self._apply(kind, manifest, cr, outcome)
        await self._provider_children.write(cr, outcome)
        release = await self._read_release() if sidecars.of(cr) else None
        await self._deployment(cr, raw_spec, config, release, outcome)
        by_container = release is not None and release >= kubernetes_release.CONTAINER_METRICS
        rest: tuple[tuple[Kind, Object | None], ...] = (
            (names.AUTOSCALERS, render.autoscaler(cr, by_container=by_container)),
            (names.DISRUPTION_BUDGETS, render.disruption_budget(cr)),
            (names.NETWORK_POLICIES, self._network_policy(cr, config)),
            (names.INGRESSES, render.ingress(cr)),
        )
        for kind, manifest in rest:
            if manifest is not None:
                await self._apply(kind, manifest, cr, outcome)
        await self._delete_unrequested(
            cr, {kind for kind, manifest in (*first, *rest) if manifest is not None}, outcome
        )
        await self._provider_children.delete_unused(cr, outcome)
        return outcome

    async def _read_release(self) -> Release:
        """Return the API server's release when this process first needed it: an upgrade changes no pods."""
        if self._release is None:
            self._release = server_release.parse(await self._writer.client.read("/version"))
        return self._release

    def _network_policy(self, cr: Distribution, config: distribution.OperatorConfig) -> Object | None:
        """Return the policy if the feature flag wants it. If it is unreadable, the CR keeps the one that it has."""
        wants_policy = config.network_policies
        if wants_policy is None:
            name = f"{cr.name}{dict(render.OPTIONAL)[names.NETWORK_POLICIES]}"
            wants_policy = self._stores.children[names.NETWORK_POLICIES].get((cr.namespace, name)) is not None
        return render.network_policy(cr, self._settings.namespace) if wants_policy else None

    async def _delete_unrequested(
        self, cr: Distribution, requested_kinds: set[Kind], outcome: Outcome
    ) -> None:
        for kind, suffix in render.OPTIONAL:
            key = (cr.namespace, f"{cr.name}{suffix}")
            if kind not in requested_kinds and await self._writer.delete(
                kind, self._stores.children[kind], key, cr
            ):
                outcome.events.append(
                    ("Normal", "ChildRemoved", f"{kind.kind} '{key[1]}' is no longer requested")
                )

    async def _apply(self, kind: Kind, manifest: Object, cr: Distribution, outcome: Outcome) -> bool:
        """Apply the object if it differs. Return whether it exists as desired."""
        store = self._stores.own_config_maps if kind == CONFIG_MAPS else self._stores.children[kind]
        try:
            await self._writer.apply(kind, store, manifest, cr, self._now())
        except (Conflict, Refused) as error:
            self._add_obstacle(kind, error, outcome)
            return False
        return True

    def _add_obstacle(self, kind: Kind, error: Conflict | Refused, outcome: Outcome) -> None:
        type_ = CONDITIONS.get(kind, reasons.DEPLOYMENT_READY)
        reason = ""
        if type_ == reasons.SERVICE_READY and isinstance(error, Refused):
            reason = "ServiceFailed"
        elif type_ == reasons.STORAGE_READY:
            reason = "StorageFailed"
        outcome.add_obstacle(type_, error, reason)

    async def _deployment(
        self,
        cr: Distribution,
        raw_spec: Object,
        config: distribution.OperatorConfig,
        release: Release | None,
        outcome: Outcome,
    ) -> None:
        store = self._stores.deployments
        try:
            live = self._writer.ours(names.DEPLOYMENTS, store, (cr.namespace, cr.name), cr)
        except Conflict as error:
            self._add_obstacle(names.DEPLOYMENTS, error, outcome)
            live = None
        record = workload.read_record(
            self._stores.own_config_maps.get((cr.namespace, f"{cr.name}{workload.RECORD}"))
        )
        ca_config_map = self._stores.own_config_maps.get((cr.namespace, f"{cr.name}-ca-bundle"))
        text = await self._certificates(cr, outcome)
        ca_digest = workload.digest(text) if text else None
        latched = workload.latched_urls(cr, live)
        dependency = dependencies.resolve(
            cr, self._stores, config, latched, ca_digest, self._tool.name(cr.name)
        )
        outcome.resolved = dependency.resolved
        outcome.obstacles += dependency.obstacles
        if release and (refusal := kubernetes_release.refusal(self._settings, release)):
            outcome.obstacles.append(Obstacle(reasons.DEPLOYMENT_READY, "InvalidSpec", refusal))
        # Without all dependencies the current Deployment keeps running unchanged.
        if outcome.obstacles and any(item.type == reasons.DEPLOYMENT_READY for item in outcome.obstacles):
            return
        assert dependency.inputs is not None
        pod_inputs = replace(
            dependency.inputs,
            native_sidecars=release is not None
            and kubernetes_release.has_native_sidecars(self._settings, release),
        )
        if text and not await self._apply(CONFIG_MAPS, ca_bundle.config_map(cr, text), cr, outcome):
            return
        inputs = (cr, pod_inputs, dependency.image_override, raw_spec)
        is_ca_current = text is None or (
            ca_config_map is not None and ca_config_map.get("data") == {ca_bundle.KEY: text}
        )
        tools = {*self._tool_config_maps(cr), self._tool.name(cr.name)}
        before = PreviousState(
            dependency.user_config_version,
            is_ca_current,
            tools,
            template_inputs.earlier_digests(*inputs),
            live is not None and self._is_refused_by_restricted(live),
        )
        decision = workload.decide(
            cr, pod_inputs, self._settings, template_inputs.digest_inputs(*inputs), live, record, before
        )
        mounted = workload.tool_of(decision.body["spec"]["template"])
        missing = mounted == self._tool.name(cr.name) and mounted not in self._tool_config_maps(cr)
        if missing and not await self._apply(CONFIG_MAPS, self._tool.config_map(cr), cr, outcome):
            return
        # The record comes before the Deployment, so that the next reconcile repairs a crash between the two.
        if await self._apply(CONFIG_MAPS, workload.record_config_map(cr, decision.record), cr, outcome):
            await self._roll_out(cr, decision, live, outcome)
        await self._delete_unused_config_maps(cr, text, decision, outcome)

    def _is_refused_by_restricted(self, live: Object) -> bool:
        newest = pods.newest(self._stores.replica_sets_of(live), live["metadata"]["uid"])
        return deployments.is_refused_by_restricted(newest)

    async def _roll_out(
        self,
        cr: Distribution,
        decision: Workload,
        live: Object | None,
        outcome: Outcome,
    ) -> None:
        store, kind = self._stores.deployments, names.DEPLOYMENTS
        memory = self._memory((cr.namespace, cr.name))
        if decision.adopt and live is not None:
            try:
                live = await self._writer.take_over(kind, store, live, cr, adoption(cr, live))
            except Refused as error:
                self._add_obstacle(kind, error, outcome)
                return
            outcome.events.append(
                ("Normal", "TakenOver", f"Deployment '{cr.name}' is adopted without a change")
            )
        if not decision.write:
            return
        digest = workload.digest(json.dumps(decision.body, sort_keys=True))
        # The same manifest is applied again, so somebody has changed the live object.
        has_drifted = live is not None and memory.applied == digest
        if has_drifted and (wait := memory.repairs.wait(self._now())):
            # Another writer keeps changing it. A retry at every event would be a loop.
            outcome.retry_after(wait)
            return
        try:
            await self._writer.put(kind, store, decision.body, live, cr, self._now(), exact=True)
        except (Conflict, Refused) as error:
            self._add_obstacle(kind, error, outcome)
            return
        memory.applied = digest
        if has_drifted:
            memory.repairs.note(self._now())
        if decision.template_changed:
            for _, item in cr.spec.providers():
                note = f"Injecting provider {item.provider_id} from image {item.image}"
                outcome.events.append(("Normal", "InjectingProvider", note))

    async def _delete_unused_config_maps(
        self, cr: Distribution, text: str | None, decision: Workload, outcome: Outcome
    ) -> None:
        """Delete our ConfigMaps that no pod template mounts any more."""
        store = self._stores.own_config_maps
        if text is None and await self._writer.delete(
            CONFIG_MAPS, store, (cr.namespace, f"{cr.name}-ca-bundle"), cr
        ):
            outcome.events.append(("Normal", "ChildRemoved", "The CA bundle is no longer requested"))
        existing = self._tool_config_maps(cr)
        if not existing:
            return
        live = self._stores.deployments.get((cr.namespace, cr.name))
        sets = self._stores.replica_sets_of(live) if live else []
        templates = [decision.body["spec"]["template"], *(item["spec"]["template"] for item in sets)]
        for name in tool_config_maps.unused(existing, templates):
            await self._writer.delete(CONFIG_MAPS, store, (cr.namespace, name), cr)

    def _tool_config_maps(self, cr: Distribution) -> list[str]:
        """Return the names of the CR's ConfigMaps with a tool."""
        return [
            name
            for namespace, name in self._stores.own_config_maps.keys()  # noqa: SIM118 (a Store is no dict)
            if namespace == cr.namespace
            and tool_config_maps.cr_of(name) == cr.name
            and (live := self._stores.own_config_maps.get((namespace, name))) is not None
            and ownership(live, cr.uid) == "ours"
        ]

    async def _certificates(self, cr: Distribution, outcome: Outcome) -> str | None:
        """Return the PEM text to mount, None if there is none. Reads the API server only after a change."""
        source = dependencies.ca_source(cr, self._stores)
        if isinstance(source, Obstacle):
            outcome.obstacles.append(source)
            return None
        if source is None:
            return None
        memory = self._memory((cr.namespace, cr.name))
        cached = memory.bundle
        if cached is None or cached[0] != source.digest:
            cached = (source.digest, await self._read_certificates(cr, source, outcome))
            # An unusable bundle is read again, because its obstacle has to be reported again.
            if not any(item.reason == "ConfigMapInvalid" for item in outcome.obstacles):
                memory.bundle = cached
        return cached[1] or None

    async def _read_certificates(self, cr: Distribution, source: Source, outcome: Outcome) -> str:
        """Read the certificates.

        A ConfigMap that was just deleted raises ApiError: the next event decides again.
        """
        try:
            live = await self._writer.client.get(CONFIG_MAPS, source.config_map, cr.namespace)
            return ca_bundle.bundle(
                live.get("data") or {}, source.keys, source.config_map, is_explicit=source.is_explicit
            )
        except ca_bundle.Unusable as error:
            outcome.obstacles.append(Obstacle(reasons.DEPLOYMENT_READY, "ConfigMapInvalid", str(error)))
        return ""


def adoption(cr: Distribution, live: Object) -> list[Object]:
    """Return the operations that restore a lost owner during an adoption."""
    if controller_of(live) is not None:
        return []
    return [{"op": "add", "path": "/metadata/ownerReferences", "value": [owner(cr)]}]
