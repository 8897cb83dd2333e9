"""A provider's controller: its watches, queue, registration and background work in a process."""

from __future__ import annotations

from functools import partial
from typing import Final

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import HELPER_KINDS, MODEL_DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._provider.contract import Provider
from kubefoundry_sdk._provider.health import completion
from kubefoundry_sdk._provider.health.models_endpoint import directly, through_server
from kubefoundry_sdk._provider.health.verification import ANSWER, Verification
from kubefoundry_sdk._provider.reconcile import finalizer
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._provider.reconcile.reconciler import reconcile
from kubefoundry_sdk._provider.registration import Registration
from kubefoundry_sdk._provider.watch.pod_creation import CreationWatch
from kubefoundry_sdk._provider.watch.pods import PodWatch
from kubefoundry_sdk._provider.watch.quota import Owner, QuotaWatch
from kubefoundry_sdk._provider.watch.upstream import Upstream
from kubefoundry_sdk._provider.watch.upstream_operator import OperatorWatch
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.helpers import Helpers
from kubefoundry_sdk._runtime.paced_queue import PacedQueue
from kubefoundry_sdk._runtime.process import Process, loop_time
from kubefoundry_sdk._runtime.store import Key


class Controller:
    """Connects a provider to a process that is not running yet. The watches call its methods."""

    def __init__(self, process: Process, provider: Provider) -> None:
        manager = names.provider_manager(provider.name)
        self._process = process
        self._provider = provider
        self._owners: dict[tuple[Kind, Key], str] = {}
        """Names of the ModelDeployments that own the helpers."""
        self._deployments = process.watch(
            MODEL_DEPLOYMENTS,
            managers=frozenset({manager}),
            content_only=True,
            trim=lambda obj: trim(obj, provider.name),
        )
        self._helpers = _watched_helpers(process, provider)
        self._upstream = Upstream(process, provider, manager, self._upstream_changed, loop_time)
        self._delayed = PacedQueue(self._enqueue)
        self._operator = self._operator_watch()
        self._registration = Registration(
            process.client,
            provider,
            self._upstream,
            self._operator,
            process.recorder,
            interval=process.options.heartbeat_timeout / 3,
        )
        pods = provider.pods
        self._pods = PodWatch(pods, self._enqueue) if pods else None
        self._creations = CreationWatch(pods, self._enqueue) if pods and pods.creation_events else None
        kind = provider.upstream.kind
        self._quotas = QuotaWatch(process, kind, self._workload_changed) if provider.queued else None
        self._context = self._reconcile_context()
        self._queue = process.queue(provider.name, self._reconcile, of=self._deployments)
        self._subscribe()
        self._start_background_work()

    def _enqueue(self, key: Key) -> None:
        self._queue.add(key)

    async def _reconcile(self, key: Key) -> float | None:
        if self._pods is not None:
            # Wait for the list of pods, because without it a model seems to have no pods.
            await self._pods.wait_until_listed()
        return await reconcile(self._context, key)

    def _deployment_changed(self, key: Key, live: Object | None) -> None:
        # Most events are about another provider's ModelDeployment, whose reconcile would do nothing.
        if live is None or not is_trimmed(live) or self._context.may_clean_up(key, live["metadata"]["uid"]):
            self._enqueue(key)

    def _upstream_changed(self) -> None:
        self._registration.poke()
        for key in self._deployments.keys():  # noqa: SIM118 (a Store is not a dict)
            self._enqueue(key)

    def _operator_changed(self) -> None:
        self._registration.poke()
        self._delayed.add(self._upstream.objects.keys())

    def _helper_changed(self, kind: Kind, key: Key, obj: Object | None) -> None:
        # An object that was deleted, or lost its owner or the labels we watch, concerns its previous owner.
        owner, former_owner = manifest.owner_name(obj) if obj else None, self._owners.pop((kind, key), None)
        if owner:
            self._owners[kind, key] = owner
        for name in filter(None, {owner, former_owner}):
            self._enqueue((key[0], name))

    def _workload_changed(self, owner: Owner) -> None:
        namespace, kind, name = owner
        key: Key | None = (namespace, name)
        if kind == "Pod":
            key = self._pods.upstream_of((namespace, name)) if self._pods else None
        if key is not None and self._quotas is not None:
            self._quotas.evicted(key, owner)
            self._enqueue(key)

    def _operator_watch(self) -> OperatorWatch | None:
        if self._provider.operator is None:
            return None
        return OperatorWatch(
            self._process.client,
            self._provider.operator,
            self._upstream.settings,
            self._operator_changed,
            clock=self._process.outage_clock.now,
        )

    def _reconcile_context(self) -> Context:
        process = self._process
        return Context(
            self._provider,
            process.client,
            process.recorder,
            self._deployments,
            self._upstream,
            self._helpers,
            process.options.finalizer_timeout,
            self._pods,
            self._verification(),
            clock=process.outage_clock.now,
            stale_after=process.options.stale_after,
            operator=self._operator,
            creations=self._creations,
            quotas=self._quotas,
        )

    def _verification(self) -> Verification:
        client, options = self._process.client, self._process.options
        # From outside of the cluster, only the API server reaches the Services.
        inside = credentials.inside(options.kubeconfig)
        return Verification(
            directly(client) if inside else through_server(client),
            lambda work: self._process.background("endpoint verification", work),
            self._enqueue,
            always=options.verify_endpoint != "false",
            attempt=completion.directly(client) if inside else completion.through_server(client),
            answers=options.verify_endpoint == ANSWER,
        )

    def _subscribe(self) -> None:
        """Reconcile a ModelDeployment when an object changes that its state depends on."""
        objects = self._upstream.objects
        self._deployments.subscribe(self._deployment_changed)
        # The upstream object has its ModelDeployment's name, so the keys are equal.
        objects.subscribe(lambda key, obj: self._enqueue(key))
        objects.subscribe(self._context.upstream_changed)
        for kind, store in self._helpers:
            store.subscribe(partial(self._helper_changed, kind))
        if self._pods is not None:
            objects.subscribe(self._pods.upstream_changed)
        if self._creations is not None:
            objects.subscribe(self._creations.upstream_changed)

    def _start_background_work(self) -> None:
        process, pods, creations = self._process, self._pods, self._creations
        if self._operator is not None:
            process.background("watch of the upstream operator", self._operator.run)
            process.while_leading("health changes", self._delayed.run)
        if pods is not None:
            process.background("watch of pods", lambda: pods.run(process))
        if creations is not None:
            process.background("watch of refused pods", lambda: creations.run(process))
        if self._quotas is not None:
            process.background("watch of Kueue", self._quotas.run)
        process.background("watch of the upstream CRD", self._upstream.run)
        process.while_leading("registration", self._registration.run)
        process.ready_when(self._not_ready)

    def _not_ready(self) -> str | None:
        return None if self._upstream.listed else f"CRD {self._provider.upstream.crd} not checked yet"


def _watched_helpers(process: Process, provider: Provider) -> Helpers:
    """Watch the provider's helpers by their labels, because other software uses these kinds, too."""
    return Helpers(
        {
            kind: process.watch(
                HELPER_KINDS[kind],
                selector=manifest.selector(provider.name),
                managers=frozenset({names.provider_manager(provider.name)}),
                content_owners=True,
                index=manifest.owner_uid,
            )
            for kind in provider.helper_kinds
        }
    )


def is_trimmed(live: Object) -> bool:
    """Check whether `trim` has reduced the ModelDeployment, because nothing of it is this provider's."""
    return "spec" not in live


_KEPT_METADATA: Final = ("name", "namespace", "uid", "generation", "deletionTimestamp")
"""Metadata that a provider needs of another provider's ModelDeployment."""


def trim(obj: Object, provider: str) -> Object:
    """Reduce another provider's ModelDeployment to the fields that show its provider, to save memory."""
    provider_name = LiveModelDeployment(obj).provider_name
    meta = obj["metadata"]
    is_manager = any(
        entry.get("manager") == names.provider_manager(provider) for entry in meta.get("managedFields", ())
    )
    if provider_name == provider or is_manager or finalizer.has(obj, provider):
        return obj
    return {
        "metadata": {key: meta[key] for key in _KEPT_METADATA if key in meta},
        "status": {"provider": {"name": provider_name}} if provider_name else {},
    }
