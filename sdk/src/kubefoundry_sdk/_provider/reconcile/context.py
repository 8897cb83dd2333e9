"""The state that a provider's reconciles share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeVar

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.engine_choice import effective_spec
from kubefoundry_sdk._api.kinds import CONFIG_MAPS, SECRETS, Object
from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._provider.contract import Deployment, Provider
from kubefoundry_sdk._provider.health import staleness
from kubefoundry_sdk._provider.health.references import ReferenceCheck
from kubefoundry_sdk._provider.health.verification import Verification
from kubefoundry_sdk._provider.reconcile import reported_generation
from kubefoundry_sdk._provider.reconcile.memory import Memory
from kubefoundry_sdk._provider.watch.pod_creation import CreationWatch
from kubefoundry_sdk._provider.watch.pods import PodWatch
from kubefoundry_sdk._provider.watch.quota import QuotaWatch
from kubefoundry_sdk._provider.watch.upstream import Upstream
from kubefoundry_sdk._provider.watch.upstream_operator import OperatorWatch
from kubefoundry_sdk._provider.write.helpers import Helpers, mark
from kubefoundry_sdk._runtime import wall_clock
from kubefoundry_sdk._runtime.recorder import Recorder
from kubefoundry_sdk._runtime.store import Key, Store

Answer = TypeVar("Answer")

_THREADS: Final = ThreadPoolExecutor(thread_name_prefix="provider")
"""Threads of functions that wait. The loop's own ones stay free, because name resolution for the Lease needs them."""


@dataclass(slots=True)
class Context:
    """The provider, its clients and its stores, for each reconcile. `pods` is None if the provider declares none.

    Attributes:
        finalizer_timeout: Seconds after which the finalizer of a deleted ModelDeployment is removed, even if objects
            are left. Another provider has the same time to clean up before this one continues without it.
        clock: The clock that measures waits for other components (`OutageClock`).
        stale_after: Seconds of an upstream operator's silence after which its status is stale.
    """

    provider: Provider
    client: Client
    recorder: Recorder
    deployments: Store
    upstream: Upstream
    helpers: Helpers
    finalizer_timeout: float
    pods: PodWatch | None
    verification: Verification
    clock: Callable[[], float]
    now: Callable[[], datetime] = wall_clock.now
    stale_after: float = staleness.THRESHOLD
    memories: dict[Key, Memory] = field(default_factory=dict)
    _uids: dict[Key, str] = field(default_factory=dict, init=False, repr=False)
    secrets: ReferenceCheck = field(init=False)
    config_maps: ReferenceCheck = field(init=False)
    creations: CreationWatch | None = None
    """None if the provider declares no Events."""
    quotas: QuotaWatch | None = None
    """None if Kueue does not hold the provider's objects."""
    operator: OperatorWatch | None = None
    """None if the provider declares no operator."""
    lacking: dict[str, float] = field(default_factory=dict, init=False)
    """Fields of the status that the CRD of an earlier release lacks, each with the time until which it is omitted."""

    def __post_init__(self) -> None:
        self.secrets = ReferenceCheck(self.client, self.recorder, SECRETS)
        self.config_maps = ReferenceCheck(self.client, self.recorder, CONFIG_MAPS)

    @property
    def manager(self) -> str:
        """The field manager of the provider's writes."""
        return names.provider_manager(self.provider.name)

    async def call(self, work: Callable[[], Answer]) -> Answer:
        """Return the result of work that calls the provider's functions.

        The work runs in a thread if the functions wait for another program. It must read no store.
        """
        if not self.provider.blocking:
            return work()
        return await asyncio.get_running_loop().run_in_executor(_THREADS, work)

    def memory(self, key: Key) -> Memory:
        """Return the memory of a ModelDeployment that exists."""
        memory = self.memories.get(key)
        if memory is None:
            memory = self.memories[key] = Memory()
        return memory

    def forget_earlier(self, key: Key, uid: str) -> None:
        """Forget an earlier ModelDeployment of that name, whose deletion no reconcile has seen.

        Otherwise the memory of it would recognize its upstream object as one of the new ModelDeployment.
        """
        if self._uids.setdefault(key, uid) != uid:
            self.forget(key)
            self._uids[key] = uid

    def may_clean_up(self, key: Key, uid: str) -> bool:
        """Check whether a reconcile of a ModelDeployment without fields of ours may have anything to remove.

        It has not if no reconcile has seen the ModelDeployment, and none of our objects exists for it. An object
        that appears later causes a reconcile by its own event.
        """
        is_listed = self.upstream.is_synced and all(store.synced.is_set() for _, store in self.helpers)
        return (
            not is_listed
            or key in self._uids
            or self.upstream.objects.state(key) is not None
            or self.helpers.exist(key[0], uid)
        )

    def upstream_changed(self, key: Key, upstream: Object | None) -> None:
        """Note that nothing serves at a version of the upstream object without a status.

        An operator may rewrite a new object and report it as ready before the next reconcile. That reconcile would
        take the status for that of an earlier version.
        """
        memory = self.memories.get(key)
        if memory is not None and upstream is not None and not upstream.get("status"):
            reported_generation.note_idle(memory.generations, upstream)

    def is_of_another(self, key: Key, helper: Object) -> bool:
        """Check whether this process applied the helper for another ModelDeployment than `key`.

        A user who may write a helper can forge its labels and annotations, so that another ModelDeployment would
        delete it.
        """
        return any(
            memory.admission.recognizes(mark(helper), helper)
            for (namespace, name), memory in self.memories.items()
            if namespace == key[0] and name != key[1]
        )

    def forget(self, key: Key) -> None:
        """Forget a ModelDeployment that is gone."""
        self.memories.pop(key, None)
        self._uids.pop(key, None)
        self.verification.forget(key)
        if self.quotas is not None:
            self.quotas.forget(key)


def read(live: Object) -> Deployment:
    """Return the typed view of a stored ModelDeployment, with the effective engine.

    Raise pydantic's ValidationError.
    """
    meta, spec = live["metadata"], effective_spec(live)
    return Deployment(
        name=meta["name"],
        namespace=meta["namespace"],
        uid=meta["uid"],
        generation=meta["generation"],
        spec=ModelDeploymentSpec.model_validate(spec),
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
        raw_spec=spec,
    )
