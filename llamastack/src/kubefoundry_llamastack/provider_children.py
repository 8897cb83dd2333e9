"""Writes the objects of services that have pods of their own, and deletes them once no server calls them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from kubefoundry_llamastack import names, reasons, workload
from kubefoundry_llamastack.memory import Memories
from kubefoundry_llamastack.observe import pods
from kubefoundry_llamastack.observe.deployments import counts
from kubefoundry_llamastack.outcome import Outcome
from kubefoundry_llamastack.ownership import differs, ownership
from kubefoundry_llamastack.render import provider_deployment
from kubefoundry_llamastack.render.provider_deployment import ProviderDeployment
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_llamastack.snapshot import Obstacle
from kubefoundry_llamastack.stores import Stores
from kubefoundry_llamastack.write import Conflict, Writer
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._runtime.refusals import Refused
from kubefoundry_sdk._runtime.store import key_of
from llamastack_providers import service

KINDS: Final = (
    names.AUTOSCALERS,
    names.DEPLOYMENTS,
    names.DISRUPTION_BUDGETS,
    names.SERVICES,
    names.SERVICE_ACCOUNTS,
    names.NETWORK_POLICIES,
)
"""Kinds of a service's objects, in the order of their deletion: its pods are never without their policy."""


@dataclass(slots=True)
class ProviderChildren:
    """Writes and deletes the objects of services with pods of their own.

    Attributes:
        writer: Writes and deletes one object.
        stores: The watched objects.
        memory: The memory of a CR.
        now: Monotonic clock, in seconds.
    """

    writer: Writer
    stores: Stores
    memory: Memories
    now: Callable[[], float]

    async def write(self, cr: Distribution, outcome: Outcome) -> None:
        """Apply the objects that differ. Add an obstacle while the server has to wait for a service."""
        for item in provider_deployment.of(cr):
            for kind, manifest in provider_deployment.objects(cr, item):
                # Without its policy, everybody could send requests to a pod.
                if not await self._apply(kind, manifest, item, cr, outcome):
                    break
        variables = workload.server_variables(cr, self._server(cr))
        waiting = [
            item.provider_id
            for item in provider_deployment.of(cr)
            if item.spec.required and not _calls(variables, item) and not self._is_available(item, cr)
        ]
        if waiting:
            text = f"Waiting for an available pod of the services of providers: {', '.join(waiting)}"
            outcome.obstacles.append(Obstacle(reasons.DEPLOYMENT_READY, "WaitingForProviders", text))

    async def _apply(
        self, kind: Kind, manifest: Object, item: ProviderDeployment, cr: Distribution, outcome: Outcome
    ) -> bool:
        store = self.stores.children[kind]
        if kind == names.DEPLOYMENTS and item.replicas is None:
            replicas = workload.kept_replicas(store.get(key_of(manifest)))
            manifest["spec"] |= {} if replicas is None else {"replicas": replicas}
        applied = self.memory((cr.namespace, cr.name)).own_pods[item.name]
        digest = workload.digest(json.dumps(manifest, sort_keys=True))
        live = store.get(key_of(manifest))
        is_repair = kind == names.DEPLOYMENTS and live is not None and applied.digest == digest
        if is_repair and live and (wait := applied.repairs.wait(self.now())) and differs(manifest, live):
            # Another writer keeps changing it, and each repair would replace the pods.
            outcome.retry_after(wait)
            return True
        try:
            is_written = await self.writer.apply(kind, store, manifest, cr, self.now())
        except (Conflict, Refused) as error:
            outcome.add_obstacle(reasons.DEPLOYMENT_READY, error)
            return False
        if kind == names.DEPLOYMENTS and is_written:
            applied.digest = digest
            if is_repair:
                applied.repairs.note(self.now())
        return True

    def _server(self, cr: Distribution) -> Object | None:
        live = self.stores.deployments.get((cr.namespace, cr.name))
        return live if live and ownership(live, cr.uid) == "ours" else None

    def _is_available(self, item: ProviderDeployment, cr: Distribution) -> bool:
        live = self.stores.deployments.get((cr.namespace, item.name))
        return live is not None and ownership(live, cr.uid) == "ours" and counts(live).available > 0

    async def delete_unused(self, cr: Distribution, outcome: Outcome) -> None:
        """Delete the objects that the CR no longer requests, of a service only once no pod of the server calls it."""
        services = {item.provider_id for item in provider_deployment.of(cr)}
        requested = {
            (kind, item.name)
            for item in provider_deployment.of(cr)
            for kind, _ in provider_deployment.objects(cr, item)
        }
        for kind, provider_id, live in self._owned(cr):
            key = key_of(live)
            if (kind, key[1]) in requested or (
                provider_id not in services and self._may_be_called(cr, provider_id, outcome)
            ):
                continue
            if await self.writer.delete(kind, self.stores.children[kind], key, cr):
                note = f"{kind.kind} '{key[1]}' is no longer requested"
                outcome.events.append(("Normal", "ChildRemoved", note))

    def _owned(self, cr: Distribution) -> Iterator[tuple[Kind, str, Object]]:
        """Yield kind, provider and object of all services that have or had pods of their own."""
        for kind in KINDS:
            for live in self.stores.children[kind].indexed(cr.uid, namespace=cr.namespace):
                meta = live["metadata"]
                provider_id = (meta.get("labels") or {}).get(names.LLSD_PROVIDER_LABEL)
                # A label alone is no proof: anybody who may edit the server's own objects can write it.
                if provider_id and meta["name"] == provider_deployment.name_of(cr.name, provider_id):
                    yield kind, provider_id, live

    def _may_be_called(self, cr: Distribution, provider_id: str, outcome: Outcome) -> bool:
        """Check whether a pod of the server may still call a service that the CR no longer requests."""
        live = self._server(cr)
        if live is None:
            return False
        address = provider_deployment.address_of(cr, provider_id)
        if workload.server_variables(cr, live).get(service.url_variable(provider_id)) == address:
            return True
        state = counts(live)
        if not state.complete or self._has_older_pods(live):
            kept = self.memory((cr.namespace, cr.name)).kept
            if state.rollout == "stalled" and provider_id not in kept:
                kept.add(provider_id)
                note = (
                    f"The service of provider '{provider_id}' is no longer requested, but older pods of the server "
                    f"call it until the rollout of Deployment '{cr.name}' ends, which makes no progress"
                )
                outcome.events.append(("Warning", "ProviderKept", note))
            return True
        return False

    def _has_older_pods(self, live: Object) -> bool:
        """Check whether a pod of an earlier template exists. It may still answer requests while it terminates."""
        replica_sets = self.stores.replica_sets_of(live)
        newest = pods.newest(replica_sets, live["metadata"]["uid"])
        if newest is None or pods.revision(newest) != pods.revision(live):
            # The watch of ReplicaSets is behind that of Deployments.
            return True
        return any(
            self.stores.pods.indexed_keys(item["metadata"]["uid"], namespace=live["metadata"]["namespace"])
            for item in replica_sets
            if item is not newest
        )


def _calls(variables: dict[str, str], item: ProviderDeployment) -> bool:
    return variables.get(service.url_variable(item.provider_id)) == item.address
