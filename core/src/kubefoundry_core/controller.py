"""Core's controller: watches, decides, and writes the differences.

`decision` and `orphans` decide on the writes. `provider_health` decides whether the providers are alive.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import random
from collections.abc import Iterable, Sequence
from typing import Final

from kubefoundry_core import lead_time
from kubefoundry_core.claims import Claims, Outcome
from kubefoundry_core.decision import Surroundings, decide, providers_of, shared
from kubefoundry_core.engine import is_stale
from kubefoundry_core.events import announcements
from kubefoundry_core.image_volumes import ImageVolumes
from kubefoundry_core.metrics import ProviderGauges, selection
from kubefoundry_core.orphans import dead_managers, invented_finalizers, orphaned_finalizers, remaining
from kubefoundry_core.provider_health import Health, Providers
from kubefoundry_sdk._api import reasons
from kubefoundry_sdk._api.kinds import LEASES, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._api.names import CORE_MANAGER, SELECTOR_LEASE, SELECTOR_MANAGER
from kubefoundry_sdk._api.validation import Problem, validate
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.errors import ApiError
from kubefoundry_sdk._runtime import status
from kubefoundry_sdk._runtime.lease import DURATION, Expiry, expired
from kubefoundry_sdk._runtime.paced_queue import PacedQueue
from kubefoundry_sdk._runtime.process import Process, loop_time
from kubefoundry_sdk._runtime.selections import SELECTIONS
from kubefoundry_sdk._runtime.store import Key, key_of
from kubefoundry_sdk._runtime.wait import Wait

log = logging.getLogger(__name__)

REPORT: Final = 0.1
REPORT_LIMIT: Final = 5.0
"""Share of `--finalizer-timeout` in which a provider has to report a deletion, at most REPORT_LIMIT seconds. After
that core reports it, so that users see the deletion even if the provider is down. A provider needs milliseconds. A
later report of the provider replaces core's."""

SHARED_FOR: Final = (10.0, 40.0)
"""Range of seconds for which core still co-owns fields that a provider has taken over, drawn for each
ModelDeployment. The release costs a write, so it waits until a burst of new models is over, and the writes are
spread."""

SEVERAL_PROVIDERS: Final = "changing hands"
"""Index value of the ModelDeployments that depend on more than one provider."""


class Controller:
    """Reconciles ModelDeployments: core's status fields, and finalizers and status of providers that are gone."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._clock = process.outage_clock.now
        self._deployments = process.watch(
            MODEL_DEPLOYMENTS, managers=frozenset({CORE_MANAGER, SELECTOR_MANAGER}), index=reported_health
        )
        self._configs = process.watch(PROVIDER_CONFIGS)
        self._leases = process.watch(
            LEASES,
            namespace=process.namespace,
            selector={"fieldSelector": f"metadata.name={SELECTOR_LEASE}"},
        )
        self._queue = process.queue("core", self._reconcile, of=self._deployments)
        self._providers = Providers(self._clock, process.options.heartbeat_timeout)
        self._healths: dict[str, Health] = {}
        self._health_timer: asyncio.TimerHandle | None = None
        self._paced_queue = PacedQueue(self._queue.add)
        self._deletions: dict[Key, Wait] = {}
        self._release_at: dict[Key, float] = {}
        self._valid: dict[Key, str] = {}
        """Digests of valid specs, which are not validated again: most events change only a status."""
        self._claims = Claims(process.client, process.recorder, self._clock, self._queue.add)
        self._image_volumes = ImageVolumes(process.client, process.namespace, self._clock)
        self._timeout = process.options.finalizer_timeout
        self._lease_expiry = Expiry(self._clock)
        self._selector = False
        self._lease_timer: asyncio.TimerHandle | None = None
        self._lead_times = lead_time.LeadTimes(loop_time)
        process.export(ProviderGauges(self._exported_providers, self._providers))
        self._deployments.subscribe(self._deployment_changed)
        self._configs.subscribe(self._config_changed)
        self._leases.subscribe(lambda key, obj: self._check_lease())
        # Health changes reach the deployments one at a time, and only on the leader.
        process.while_leading("health changes", self._paced_queue.run)
        process.while_leading("claims", self._claims.run)

    def registered(self) -> dict[str, Object]:
        """Return the InferenceProviderConfigs by name."""
        return {obj["metadata"]["name"]: obj for obj in self._configs.objects()}

    def left(self, namespace: str) -> int:
        """Return the bytes by which the ModelDeployments of a namespace may grow."""
        return self._deployments.room.left(namespace)

    async def models(self) -> list[str]:
        """Return "namespace/name" of the ModelDeployments.

        If the store is empty, return at most one model from the API server: the watch may not have delivered it yet.

        Raises:
            ApiError: The API server refuses the request, although the CRD is installed.
            Unreachable: The API server does not answer.
        """
        stored = ["/".join(key) for key in self._deployments.keys()]  # noqa: SIM118 (not a dict)
        if stored:
            return stored
        try:
            async for page, _ in self._process.client.pages(MODEL_DEPLOYMENTS, limit=1):
                return ["/".join(key_of(each)) for each in page]
        except ApiError as error:
            if not error.not_found:
                raise
        return []

    def counted(self) -> Iterable[Object]:
        """Return the ModelDeployments that this replica counts: all on the leader, none elsewhere.

        The sum of this metric over all replicas then counts each ModelDeployment once.
        """
        return self._deployments.objects() if self._process.leading.is_set() else ()

    def _exported_providers(self) -> dict[str, Object]:
        return self.registered() if self._process.leading.is_set() else {}

    async def _reconcile(self, key: Key) -> float | None:
        live = self._deployments.get(key)
        if live is None:
            self._deletions.pop(key, None)
            self._release_at.pop(key, None)
            self._valid.pop(key, None)
            self._claims.forget(key)
            return None
        try:
            waits: list[float | None] = []
            unreported = False
            if LiveModelDeployment(live).is_deleting:
                wait = self._deletions.setdefault(key, Wait())
                left = wait.left([live["metadata"]["uid"]], self._timeout, self._clock())
                silence = left - self._timeout + min(REPORT * self._timeout, REPORT_LIMIT)
                unreported = silence <= 0
                waits += [
                    silence if silence > 0 else None,
                    await self._remove_orphaned_finalizers(live, left),
                ]
                live = self._deployments.get(key)
            # Write the status first: a dead manager cannot release a condition while core co-owns a part of it.
            if live:
                problems = self._problems(key, live)
                volumes = Outcome() if problems else await self._settle_volumes(key, live)
                waits.append(volumes.wait)
                if await self._write_status(key, live, unreported, problems, volumes):
                    live = self._deployments.get(key)
            if live:
                live = await self._remove_stale_engine(live)
                waits += [await self._release_dead_managers(live), self._release_in(key, live)]
        except ApiError as error:
            if not error.not_found:
                raise
            # Deleted meanwhile; its watch event is on the way.
            return None
        return min((wait for wait in waits if wait is not None), default=None)

    async def _settle_volumes(self, key: Key, live: Object) -> Outcome:
        """Return the state of the model's volumes. Create claims only if no image volume is unsupported."""
        images = await self._image_volumes.check(live)
        return images if images.problem else await self._claims.settle(key, live)

    async def _write_status(
        self, key: Key, live: Object, unreported: bool, problems: Sequence[Problem], volumes: Outcome
    ) -> bool:
        """Write core's fields if they differ, and return whether they did.

        Args:
            key: The key of the ModelDeployment.
            live: The ModelDeployment.
            unreported: See `Surroundings`.
            problems: The problems of the spec.
            volumes: The state of the volumes of `model.storage`.
        """
        # A deployment that still waits for its paced report keeps the last report.
        health = {} if key in self._paced_queue else self._healths
        altered = bool(self._deployments.altered.text(key))
        surroundings = Surroundings(
            registered=self._providers.registered(),
            selector=self._selector,
            engines=self._providers.engines(),
            health=health,
            unreported=unreported,
            altered=altered,
            volume_problem=volumes.problem,
            volume_reason=volumes.reason,
        )
        desired = decide(live, surroundings, problems)
        client, store = self._process.client, self._deployments
        # Nothing is shared if core has to write the phase itself: it takes these fields over from a provider that
        # does not report a deletion.
        due = "phase" in desired or self._release_in(key, live) is None
        co_owned = frozenset[str]() if due else shared(live)
        written = await status.write(
            client, store, MODEL_DEPLOYMENTS, live, desired, manager=CORE_MANAGER, shared=co_owned
        )
        if written:
            before = LiveModelDeployment(live).status
            for event in announcements(before, desired):
                self._process.recorder.event(live, event.type, event.reason, event.note)
            if labels := selection(before, desired):
                SELECTIONS.labels(*labels).inc()
        return written

    def _problems(self, key: Key, live: Object) -> list[Problem]:
        """Return the problems of the spec."""
        spec = live.get("spec", {})
        digest = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()
        if self._valid.get(key) == digest:
            return []
        problems = validate(spec)
        if problems:
            self._valid.pop(key, None)
        else:
            self._valid[key] = digest
        return problems

    def _release_in(self, key: Key, live: Object) -> float | None:
        """Return the seconds until core releases its shared fields, or None if there is no wait."""
        if not shared(live):
            self._release_at.pop(key, None)
            return None
        now = self._clock()
        left = self._release_at.setdefault(key, now + random.uniform(*SHARED_FOR)) - now
        return left if left > 0 else None

    async def _remove_orphaned_finalizers(self, live: Object, left: float) -> float | None:
        """Remove the finalizers of providers that are gone. Return the seconds until more may be removed.

        Args:
            live: The ModelDeployment.
            left: Seconds until the deletion times out.
        """
        orphaned = orphaned_finalizers(live, self._providers.lost_in(), left)
        if not orphaned.names:
            return orphaned.retry
        meta = live["metadata"]
        kept = [name for name in meta["finalizers"] if name not in orphaned.names]
        leftovers = remaining(live)
        stored = await self._process.client.json_patch(
            MODEL_DEPLOYMENTS,
            meta["name"],
            meta["namespace"],
            [
                {"op": "test", "path": "/metadata/uid", "value": meta["uid"]},
                {"op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]},
                {"op": "replace", "path": "/metadata/finalizers", "value": kept},
            ],
            manager=CORE_MANAGER,
        )
        if invented_finalizers(live, self._providers.lost_in()).issuperset(orphaned.names):
            removed = ", ".join(orphaned.names)
            note = f"Finalizer {removed} removed: no provider of that name is registered or has written to it"
            self._process.recorder.event(live, "Normal", "FinalizerRemoved", note)
            if kept:
                self._deployments.put(stored)
            return orphaned.retry
        log.warning(
            "finalizers removed after a timeout",
            extra=logs.values(finalizers=orphaned.names, seconds=self._timeout, left=leftovers),
        )
        self._process.recorder.event(
            live,
            "Warning",
            "FinalizerTimeout",
            f"Finalizer removed after timeout, provider resource may be orphaned: {leftovers}",
        )
        if kept:
            self._deployments.put(stored)
        return orphaned.retry

    async def _remove_stale_engine(self, live: Object) -> Object:
        """Remove the selected engine if the spec names an engine, and return the ModelDeployment as stored.

        The engine's field manager also removes it, but may be missing: managers can be reset, and a status can be
        restored. A stale engine would count as the serving engine once the spec names none.
        """
        if not is_stale(live):
            return live
        meta = live["metadata"]
        stored = await self._process.client.json_patch(
            MODEL_DEPLOYMENTS,
            meta["name"],
            meta["namespace"],
            [
                {"op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]},
                {"op": "remove", "path": "/status/provider/engine"},
            ],
            manager=CORE_MANAGER,
            subresource="/status",
        )
        self._deployments.put(stored)
        return stored

    async def _release_dead_managers(self, live: Object) -> float | None:
        """Release the status fields of providers that are gone, with an empty apply as each field manager.

        Return the seconds until more may be released.
        """
        dead = dead_managers(live, self._providers.lost_in())
        for manager in dead.names:
            meta = live["metadata"]
            body = {
                "apiVersion": live["apiVersion"],
                "kind": live["kind"],
                "metadata": {name: meta[name] for name in ("name", "namespace", "uid", "resourceVersion")},
            }
            live = await self._process.client.apply_status(MODEL_DEPLOYMENTS, body, manager=manager)
            self._deployments.put(live)
            log.info("status fields of a lost provider removed", extra=logs.values(manager=manager))
        return dead.retry

    def _deployment_changed(self, key: Key, deployment: Object | None) -> None:
        provider = LiveModelDeployment(deployment).provider_name if deployment else None
        if provider and self._providers.expect(provider):
            self._check_providers()
        self._lead_times.see(
            key,
            deployment,
            is_new=self._deployments.synced.is_set(),
            counts=self._process.leading.is_set(),
            providers=self._providers.registered(),
        )
        self._queue.add(key)

    def _config_changed(self, key: Key, config: Object | None) -> None:
        if config is not None:
            lead_time.prepare(key[1])
        if self._providers.see(key[1], config):
            # The message of a waiting deployment may list the registered providers.
            self._enqueue_all()
        self._check_providers()

    def _check_providers(self) -> None:
        """Enqueue the deployments of providers whose health has changed.

        Start a timer for the next change that no event reports, such as a missing heartbeat.
        """
        before, self._healths = self._healths, self._providers.healths()
        for name, health in self._healths.items():
            if health != before.get(name):
                outdated = ("False",) if health.good else ("", "True", "False")
                for status in outdated:
                    self._paced_queue.add(self._deployments.indexed_keys(f"{name} {status}", namespace=None))
                self._paced_queue.add(self._deployments.indexed_keys(SEVERAL_PROVIDERS, namespace=None))
        if self._health_timer:
            self._health_timer.cancel()
            self._health_timer = None
        delay = self._providers.again()
        if delay is not None:
            loop = asyncio.get_running_loop()
            self._health_timer = loop.call_later(delay + 0.1, self._check_providers)

    def _check_lease(self) -> None:
        """Check whether a selector is running, and start a timer to check again when its Lease would expire."""
        lease = self._leases.get((self._process.namespace, SELECTOR_LEASE))
        spec = (lease or {}).get("spec") or {}
        age = self._lease_expiry.see(spec)
        is_running = not expired(lease, age)
        if is_running != self._selector:
            self._selector = is_running
            self._enqueue_all()
        if self._lease_timer:
            self._lease_timer.cancel()
            self._lease_timer = None
        if is_running:
            left = float(spec.get("leaseDurationSeconds") or DURATION) - age
            self._lease_timer = asyncio.get_running_loop().call_later(left + 0.1, self._check_lease)

    def _enqueue_all(self) -> None:
        keys = self._deployments.keys()
        for key in keys:
            self._queue.add(key)


def reported_health(deployment: Object) -> str | None:
    """Return the store's index value: the provider, a space, and the status of `ProviderHealthy` if there is one.

    Return SEVERAL_PROVIDERS for several providers, and None for none.
    """
    live = LiveModelDeployment(deployment)
    providers = providers_of(deployment, live.provider_name)
    if len(providers) != 1:
        return SEVERAL_PROVIDERS if providers else None
    condition = live.condition(reasons.PROVIDER_HEALTHY) or {}
    return f"{providers[0]} {condition.get('status', '')}"
