"""Watches Events about pods that a quota, a policy or a LimitRange refuses, if permitted.

A refused pod does not exist, and most upstream systems only report that they wait. The controller that creates the
pods (of a ReplicaSet, a StatefulSet, a RayCluster) writes an Event with the API server's message. No other object in
Kubernetes shows the refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kubefoundry_sdk._api.kinds import CORE_EVENTS, Object
from kubefoundry_sdk._api.pod_status import last_line
from kubefoundry_sdk._provider.health.pod_causes import Cause
from kubefoundry_sdk._provider.pod_owners import maker_names
from kubefoundry_sdk._provider.upstream_pods import Pods
from kubefoundry_sdk._runtime.memory_quota import MemoryQuota
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk._runtime.store import Key, Store, key_of

FAILED: Final = "Failed"
"""Prefix of the reasons that count: `FailedCreate` of Kubernetes' controllers, `FailedToCreateWorkerPod` of
KubeRay."""

LONGEST_NAME: Final = 253
"""Characters of an object's name (Kubernetes, DNS subdomains)."""

LONGEST_WORD: Final = 128
"""Characters of a reason (Kubernetes' limit for Events of `events.k8s.io`) and of a kind (63)."""

TOTAL: Final = 12 * 2**20
"""Bytes that compressed Events may take (some 5,000 Events), of which one namespace gets a third (`memory_quota`).
The index takes as much again. The limit is needed because a user who may write Events can write any number."""


class CreationWatch:
    """The sink of the Events' watch. `changed` is called with the upstream object whose pods cannot be created."""

    def __init__(self, source: Pods, changed: Callable[[Key], None]) -> None:
        self._source = source
        self._changed = changed
        self._events = Store(trim=trim, room=MemoryQuota(TOTAL))
        self._events.subscribe(self._event_changed)
        self._names_of_event: dict[Key, list[str]] = {}
        """For each Event, the names by which an upstream object may know the Event's controller (`_names`)."""
        self._events_of_name: dict[str, set[Key]] = {}
        """The keys of the Events by those names."""
        self._upstream: dict[str, Key] = {}
        self._makers: dict[Key, list[str]] = {}

    async def run(self, process: Process) -> None:
        """Watch the Events until cancelled. Wait for the permission if it is missing."""
        selector = {"fieldSelector": self._source.creation_events or ""}
        await process.follow(
            CORE_EVENTS, self._events, store=self._events, selector=selector, refused=lambda: None
        )

    def cause(self, upstream: Object, pods: Iterable[Object]) -> Cause | None:
        """Return why pods of the upstream object are not created, or None if no Event shows a reason.

        An Event is ignored once its controller has a pod of the kind that was refused.
        """
        names = [pod["metadata"]["name"] for pod in pods]
        created = upstream["metadata"]["creationTimestamp"]
        for name in self._makers.get(key_of(upstream), ()):
            for key in sorted(self._events_of_name.get(name, ())):
                event = self._events.get(key)
                if (
                    event
                    and event["metadata"]["creationTimestamp"] >= created
                    and not _is_resolved(event, names)
                ):
                    maker = f"{event['involvedObject']['kind']} {event['involvedObject']['name']}"
                    return Cause(
                        f"{maker} cannot create its pods: {event['message']}; request less, or have the quota, "
                        "limit or policy changed",
                        failed=True,
                        rank=0,
                    )
        return None

    def upstream_changed(self, key: Key, upstream: Object | None) -> None:
        """Record which controllers create the pods of an upstream object; None if the object is gone."""
        for maker in self._makers.pop(key, ()):
            self._upstream.pop(maker, None)
        if upstream is not None:
            self._makers[key] = [f"{key[0]}/{name}" for name in self._source.makers(upstream)]
            self._upstream.update(dict.fromkeys(self._makers[key], key))

    def replace(self, objects: Iterable[Object], resource_version: str, *, rewound: bool = False) -> None:
        """Take a complete list of Events."""
        self._events.replace(objects, resource_version, rewound=rewound)

    def put(self, obj: Object) -> None:
        """Take an added or changed Event."""
        self._events.put(obj)

    def remove(self, obj: Object) -> None:
        """Take the last state of a deleted Event."""
        self._events.remove(obj)

    def events(self) -> list[Object]:
        """Return the stored parts of the Events about pods that cannot be created."""
        return list(self._events.objects())

    def _event_changed(self, key: Key, event: Object | None) -> None:
        before = self._names_of_event.pop(key, [])
        for name in before:
            keys = self._events_of_name[name]
            keys.discard(key)
            if not keys:
                del self._events_of_name[name]
        now = self._names_of_event[key] = _names(event) if event else []
        if not now:
            del self._names_of_event[key]
        for name in now:
            self._events_of_name.setdefault(name, set()).add(key)
        for upstream_key in {self._upstream[name] for name in (*before, *now) if name in self._upstream}:
            self._changed(upstream_key)


def trim(event: Object) -> Object | None:
    """Return the parts of an Event that are reported, or None for any other Event.

    The API server checks neither names nor lengths (Kubernetes 1.36, pkg/apis/core/validation/events.go). So an Event
    is also ignored if its kind, name or reason is longer than a controller can write it.
    """
    meta: Mapping[str, Any] = event["metadata"]
    kept = ("name", "namespace", "creationTimestamp")
    regarding = event.get("involvedObject") or {}
    kind, name, reason = str(regarding.get("kind")), str(regarding.get("name")), str(event.get("reason"))
    if (
        not reason.startswith(FAILED)
        or len(name) > LONGEST_NAME
        or max(len(kind), len(reason)) > LONGEST_WORD
    ):
        return None
    return {
        "metadata": {name: meta[name] for name in kept if name in meta},
        "involvedObject": {"kind": kind, "name": name},
        "reason": reason,
        "message": last_line(str(event.get("message") or "")),
    }


def _names(event: Object) -> list[str]:
    """Return the names by which an upstream object may know the controller.

    A controller has its name; a ReplicaSet also has that name without its generated parts.
    """
    kind, name = event["involvedObject"]["kind"], event["involvedObject"]["name"]
    return [f"{event['metadata']['namespace']}/{maker}" for maker in maker_names(kind, name)]


def _is_resolved(event: Object, pods: list[str]) -> bool:
    """Check whether the controller has a pod of the kind (worker, head) that it could not create."""
    maker, reason = event["involvedObject"]["name"], event["reason"]
    part = next((part for part in ("Worker", "Head") if part in reason), "")
    return any(name.startswith(f"{maker}-") and f"-{part.lower()}" in name for name in pods)
