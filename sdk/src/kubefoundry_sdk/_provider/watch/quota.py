"""Watches the Workloads of Kueue that wait for quota, while Kueue is installed and if the watch is permitted.

A queued object does not show why it waits: Kueue suspends a RayService, and gates a pod. The reason is in the
conditions of a Workload that the object, or the pod, owns (Kueue 0.17, apis/kueue/v1beta2/workload_types.go).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any, Final

from kubefoundry_sdk._api.kinds import WORKLOADS, Object
from kubefoundry_sdk._api.pod_status import ADMISSION_GATE, one_line
from kubefoundry_sdk._api.untrusted import mapping, mappings
from kubefoundry_sdk._provider.health.pod_causes import UNSCHEDULED, Cause, scheduling_gates
from kubefoundry_sdk._provider.upstream_status import UpstreamCondition, text, upstream_conditions
from kubefoundry_sdk._runtime.crd_watch import CrdWatch
from kubefoundry_sdk._runtime.memory_quota import MemoryQuota
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk._runtime.store import Key, Store, key_of

VERSIONS: Final = (WORKLOADS.version, "v1beta1")
"""Versions with the same conditions and `spec.queueName`."""

TOTAL: Final = 12 * 2**20
"""Bytes that compressed Workloads may take (some 10,000), of which one namespace gets a third (`memory_quota`)."""

LONGEST_NAME: Final = 253
"""Characters of a name (Kubernetes, DNS subdomains)."""

REPLACED: Final = 60.0
"""Seconds for which an eviction is remembered while no pod waits. In that time a new pod replaces the evicted one."""

Owner = tuple[str, str, str]
"""Namespace, kind and name of the object that owns a Workload."""


class QuotaWatch(CrdWatch):
    """The sink of the CRD's watch. `changed` is called with the owner of a Workload that starts or stops waiting."""

    def __init__(
        self,
        process: Process,
        kind: str,
        changed: Callable[[Owner], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        kinds = frozenset({kind, "Pod"})
        store = Store(trim=lambda workload: trim(workload, kinds), index=_owner_text, room=MemoryQuota(TOTAL))
        # Without a permission to read the CRD, wait for it.
        super().__init__(process, WORKLOADS.crd, store, lambda: None, refused=lambda: None)
        self._notify = changed
        self._owners: dict[Key, Owner] = {}
        self._evictions: dict[Key, tuple[str, float]] = {}
        """The last eviction of a pod and its time, by upstream object. The evicted pod and its Workload are gone."""
        self._version = ""
        store.subscribe(self._workload_changed)

    def defined(self, crd: Object | None) -> None:
        """Watch the Workloads in a version that the CRD serves; None if Kueue is not installed."""
        served = {item["name"] for item in crd["spec"]["versions"] if item.get("served")} if crd else set()
        version = next((version for version in VERSIONS if version in served), "")
        if version != self._version:
            self._version = version
            kind = replace(WORKLOADS, version=version) if version else None
            self.follow_objects(kind, refused=lambda: None)

    def cause(self, upstream: Object, pods: Iterable[Object]) -> Cause | None:
        """Return why the upstream object or one of its pods waits for quota, None if they do not wait."""
        namespace, name = key = key_of(upstream)
        if waiting := self._of((namespace, upstream["kind"], name)):
            return _cause(f"{upstream['kind']} '{name}'", waiting, "")
        gated = sorted(
            (
                pod
                for pod in pods
                if ADMISSION_GATE in scheduling_gates(pod) and not pod["metadata"].get("deletionTimestamp")
            ),
            key=lambda pod: str(pod["metadata"]["name"]),
        )
        for pod in gated:
            if waiting := self._of((namespace, "Pod", pod["metadata"]["name"])):
                more = f" and {len(gated) - 1} more" if len(gated) > 1 else ""
                subject = f"pod {pod['metadata']['name']}{more}"
                return _cause(subject, waiting, self._evictions.get(key, ("", 0.0))[0], several=bool(more))
        if not gated and key in self._evictions and self._clock() - self._evictions[key][1] > REPLACED:
            del self._evictions[key]
        return None

    def evicted(self, upstream: Key, owner: Owner) -> None:
        """Remember the eviction of a pod of an upstream object, if the Workload of `owner` shows one."""
        if owner[1] == "Pod" and (workload := self._of(owner)) and workload["evicted"]:
            self._evictions[upstream] = workload["evicted"], self._clock()

    def forget(self, upstream: Key) -> None:
        """Forget an upstream object that is gone."""
        self._evictions.pop(upstream, None)

    def _of(self, owner: Owner) -> Any:
        return next(iter(self.objects.indexed("/".join(owner), namespace=owner[0])), None)

    def _workload_changed(self, key: Key, workload: Object | None) -> None:
        before = self._owners.pop(key, None)
        if workload is not None:
            self._owners[key] = _owner(workload)
        for owner in {owner for owner in (before, self._owners.get(key)) if owner}:
            self._notify(owner)


def trim(workload: Object, kinds: Collection[str]) -> Object | None:
    """Return what is reported of a Workload that waits or is evicted, or None for any other Workload.

    Args:
        workload: The Workload.
        kinds: The kinds of owners that are reported.
    """
    meta = workload["metadata"]
    owner = next((item for item in mappings(meta.get("ownerReferences")) if item.get("kind") in kinds), None)
    queue = text(mapping(workload.get("spec")).get("queueName"))
    if owner is None or max(len(str(owner.get("name"))), len(queue)) > LONGEST_NAME:
        return None
    conditions = upstream_conditions(workload.get("status"))
    reserved, evicted = (conditions.get(name, UpstreamCondition()) for name in ("QuotaReserved", "Evicted"))
    if reserved.status == "True" and evicted.status != "True":
        return None
    return {
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        "owner": {"kind": owner["kind"], "name": str(owner.get("name"))},
        "queue": queue,
        "reason": one_line(reserved.message) if reserved.status != "True" else "",
        "evicted": one_line(evicted.message) if evicted.status == "True" else "",
    }


def _owner(workload: Object) -> Owner:
    return workload["metadata"]["namespace"], workload["owner"]["kind"], workload["owner"]["name"]


def _owner_text(workload: Object) -> str:
    return "/".join(_owner(workload))


def _cause(subject: str, workload: Object, eviction: str, *, several: bool = False) -> Cause:
    evicted = "Kueue has evicted it" if workload["evicted"] else "Kueue has evicted an earlier pod"
    words = workload["evicted"] or eviction
    reasons = filter(None, (workload["reason"], f"{evicted}: {words}" if words else ""))
    reason = "; ".join(reasons) or "Kueue gives no reason yet"
    wait = "wait" if several else "waits"
    return Cause(
        f"{subject} {wait} for quota in queue {workload['queue']}: {reason}", failed=False, rank=UNSCHEDULED
    )
