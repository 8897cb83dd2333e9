"""Watches for pods that are never created because a quota, a policy or a LimitRange refuses them, if permitted to.

No pod reports it, and most upstream systems only report that they wait. The controller that creates the pods (of a
ReplicaSet, a StatefulSet, a RayCluster) writes an Event with the API server's words, the only trace in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kubefoundry_sdk.api.kinds import CORE_EVENTS, Object
from kubefoundry_sdk.api.pod_status import last_line
from kubefoundry_sdk.cluster.skipped import skipped
from kubefoundry_sdk.provider.health.pod_causes import Cause
from kubefoundry_sdk.provider.makers import maker_names
from kubefoundry_sdk.provider.upstream_pods import Pods
from kubefoundry_sdk.runtime.process import Process
from kubefoundry_sdk.runtime.store import Key, key_of

FAILED: Final = "Failed"
"""Prefixes of the reasons: `FailedCreate` of Kubernetes' controllers, `FailedToCreateWorkerPod` of KubeRay."""


class CreationWatch:
    """The sink of the Events' watch. `changed` is called with the upstream object whose pods cannot be created."""

    def __init__(self, source: Pods, changed: Callable[[Key], None]) -> None:
        self._source = source
        self._changed = changed
        self._events: dict[Key, Object] = {}
        self._informed: dict[str, set[Key]] = {}
        """Events by what an upstream object may call the maker that they tell of (`_names`)."""
        self._upstream: dict[str, Key] = {}
        self._makers: dict[Key, list[str]] = {}

    async def run(self, process: Process) -> None:
        """Watches the Events until cancelled; waits for the permission if it is missing."""
        selector = {"fieldSelector": self._source.creation_events or ""}
        await process.follow(CORE_EVENTS, self, selector=selector, refused=lambda: None)

    def cause(self, upstream: Object, pods: Iterable[Object]) -> Cause | None:
        """Why pods of the upstream object are not created; None once every refused pod exists.

        pods: those of the upstream object. A pod of the controller answers its Event.
        """
        names = [pod["metadata"]["name"] for pod in pods]
        created = upstream["metadata"]["creationTimestamp"]
        for name in self._makers.get(key_of(upstream), ()):
            for key in sorted(self._informed.get(name, ())):
                event = self._events[key]
                if event["metadata"]["creationTimestamp"] >= created and not _answered(event, names):
                    maker = f"{event['involvedObject']['kind']} {event['involvedObject']['name']}"
                    return Cause(
                        f"{maker} cannot create its pods: {event['message']}; request less, or have the quota, "
                        "limit or policy changed",
                        failed=True,
                        rank=0,
                    )
        return None

    def upstream_changed(self, key: Key, upstream: Object | None) -> None:
        """Records which controllers create the pods of an upstream object; None if the object is gone."""
        for maker in self._makers.pop(key, ()):
            self._upstream.pop(maker, None)
        if upstream is not None:
            self._makers[key] = [f"{key[0]}/{name}" for name in self._source.makers(upstream)]
            self._upstream.update(dict.fromkeys(self._makers[key], key))

    def replace(self, objects: Iterable[Object], resource_version: str, *, rewound: bool = False) -> None:
        there = set()
        for obj in objects:
            try:
                self.put(obj)
                there.add(key_of(obj))
            except Exception as error:
                skipped(obj, error)
        for key in [key for key in self._events if key not in there]:
            self._forget(key)

    def put(self, obj: Object) -> None:
        event = trim(obj)
        key = key_of(event)
        self._forget(key)
        if event["reason"].startswith(FAILED):
            self._events[key] = event
            for name in _names(event):
                self._informed.setdefault(name, set()).add(key)
            self._notify(event)

    def remove(self, obj: Object) -> None:
        self._forget(key_of(obj))

    def _forget(self, key: Key) -> None:
        event = self._events.pop(key, None)
        for name in _names(event) if event else ():
            keys = self._informed.get(name, set())
            keys.discard(key)
            if not keys:
                self._informed.pop(name, None)
        if event is not None:
            self._notify(event)

    def _notify(self, event: Object) -> None:
        for key in {self._upstream[name] for name in _names(event) if name in self._upstream}:
            self._changed(key)


def trim(event: Object) -> Object:
    """The parts of an Event that are reported."""
    meta: Mapping[str, Any] = event["metadata"]
    kept = ("name", "namespace", "resourceVersion", "creationTimestamp")
    regarding = event.get("involvedObject") or {}
    return {
        "metadata": {name: meta[name] for name in kept if name in meta},
        "involvedObject": {name: str(regarding.get(name)) for name in ("kind", "name")},
        "reason": str(event.get("reason")),
        "message": last_line(str(event.get("message") or "")),
    }


def _names(event: Object) -> list[str]:
    """The names that an upstream object may know the controller by: its name, for a ReplicaSet also without its
    generated parts."""
    kind, name = event["involvedObject"]["kind"], event["involvedObject"]["name"]
    return [f"{event['metadata']['namespace']}/{maker}" for maker in maker_names(kind, name)]


def _answered(event: Object, pods: list[str]) -> bool:
    """Whether the controller has a pod of the kind that it could not create."""
    maker, reason = event["involvedObject"]["name"], event["reason"]
    part = next((part for part in ("Worker", "Head") if part in reason), "")
    return any(name.startswith(f"{maker}-") and f"-{part.lower()}" in name for name in pods)
