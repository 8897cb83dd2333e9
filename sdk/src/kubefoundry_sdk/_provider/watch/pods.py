"""Watches the pods of upstream objects, if permitted. `pod_causes.cause` reads these pods."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kubefoundry_sdk._api.kinds import PODS, Object
from kubefoundry_sdk._api.pod_status import (
    CREATING,
    FINISHED,
    GATED,
    creating,
    one_line,
    reached,
    root_cause,
    unscheduled,
)
from kubefoundry_sdk._api.untrusted import mapping, mappings
from kubefoundry_sdk._provider.contract import QUEUE_LABEL
from kubefoundry_sdk._provider.upstream_pods import Pods, belongs, selector
from kubefoundry_sdk._runtime.process import Process
from kubefoundry_sdk._runtime.store import Key, Store

FIRST_LIST: Final = 10.0
"""Seconds that reconciling waits for the first list of pods. Without it, a restarted provider would report Deploying
for a model that fails because of a pod."""

GATES: Final = 5
"""Scheduling gates of a pod that are reported."""

Owner = tuple[str, str]
"""Namespace, and value of the provider's label."""


class PodWatch:
    """The sink of the pods' watch. `changed` is called with the upstream object whose pods changed."""

    def __init__(self, source: Pods, changed: Callable[[Key], None]) -> None:
        self._source = source
        self._changed = changed
        self._store = Store(trim=lambda pod: trim(pod, source.label), index=self._index)
        self._store.subscribe(self._pod_changed)
        self._upstream: dict[Owner, Key] = {}
        self._owners: dict[Key, list[Owner]] = {}
        self._troubled: dict[Key, Owner] = {}
        """Pods in trouble, with the owner of each."""
        self._answered = asyncio.Event()
        self._is_unlisted = True

    async def run(self, process: Process) -> None:
        """Watch the pods until cancelled. Wait for the permission if it is missing."""
        await process.follow(
            PODS,
            self,
            store=self._store,
            selector={"labelSelector": selector(self._source)},
            refused=self._refused,
        )

    async def wait_until_listed(self) -> None:
        """Return once the pods are listed, cannot be listed, or the list takes too long."""
        if self._answered.is_set():
            return
        try:
            async with asyncio.timeout(FIRST_LIST):
                await self._answered.wait()
        except TimeoutError:
            self._answered.set()

    @property
    def is_listed(self) -> bool:
        """Whether the pods are listed. Only then does an empty result of `of` mean that the object has no pods."""
        return not self._is_unlisted

    def of(self, upstream: Object) -> list[Object]:
        """Return the pods of the upstream object, without the pods of an earlier object of that name."""
        if self._is_unlisted:
            return []
        meta = upstream["metadata"]
        return [
            pod
            for value in self._source.values(upstream)
            for pod in self._store.indexed(f"{meta['namespace']}/{value}", namespace=meta["namespace"])
            if belongs(self._source, pod, upstream)
        ]

    def upstream_changed(self, key: Key, upstream: Object | None) -> None:
        """Record which pods belong to an upstream object; None if the object is gone."""
        owners = [(key[0], value) for value in self._source.values(upstream)] if upstream else []
        for owner in self._owners.pop(key, ()):
            self._upstream.pop(owner, None)
        if owners:
            self._owners[key] = owners
            self._upstream.update(dict.fromkeys(owners, key))

    def upstream_of(self, pod: Key) -> Key | None:
        """Return the upstream object of a pod, None if it is unknown."""
        found = self._store.get(pod)
        return self._upstream.get(self._owner(found)) if found else None

    def replace(self, objects: Iterable[Object], resource_version: str, *, rewound: bool = False) -> None:
        """Take a complete list of pods."""
        self._is_unlisted = False
        self._store.replace(objects, resource_version, rewound=rewound)
        self._answered.set()

    def put(self, obj: Object) -> None:
        """Take an added or changed pod."""
        self._store.put(obj)

    def remove(self, obj: Object) -> None:
        """Take the last state of a deleted pod."""
        self._store.remove(obj)

    def _refused(self) -> None:
        self._is_unlisted = True
        self._answered.set()
        for owner in self._troubled.values():
            self._notify(owner)

    def _pod_changed(self, key: Key, pod: Object | None) -> None:
        before = self._troubled.pop(key, None)
        if pod is not None and pod["status"]:
            before = self._troubled[key] = self._owner(pod)
        if before is not None:
            self._notify(before)

    def _notify(self, owner: Owner) -> None:
        if (key := self._upstream.get(owner)) is not None:
            self._changed(key)

    def _index(self, pod: Object) -> str:
        return "/".join(self._owner(pod))

    def _owner(self, pod: Object) -> Owner:
        return pod["metadata"]["namespace"], pod["metadata"]["labels"][self._source.label]


def trim(pod: Object, label: str) -> Object:
    """Return the parts that `pod_causes.cause` and `start.decide` read.

    Of a pod without a problem, keep only the metadata and the steps of its start.
    """
    meta = pod["metadata"]
    kept = ("name", "namespace", "resourceVersion", "creationTimestamp", "deletionTimestamp")
    status = pod.get("status") or {}
    reported = _trim_finished(status) if status.get("phase") in FINISHED else _trim_live(status)
    trimmed: Object = {
        "metadata": {
            **{name: meta[name] for name in kept if name in meta},
            "labels": {label: meta["labels"][label]},
            **_controller(meta),
        },
        "status": {name: value for name, value in reported.items() if value},
    }
    if steps := reached(status):
        trimmed["reached"] = steps
    if (unscheduled(status) or ("",))[0] == GATED:
        if queue := meta["labels"].get(QUEUE_LABEL):
            trimmed["metadata"]["labels"][QUEUE_LABEL] = queue
        gates = list(mappings(mapping(pod.get("spec")).get("schedulingGates")))
        trimmed["spec"] = {"schedulingGates": gates[:GATES]}
    return trimmed


def _trim_live(status: Mapping[str, Any]) -> dict[str, Any]:
    starting = creating(status)
    return {
        "conditions": [
            item
            for item in status.get("conditions") or ()
            if item.get("type") == "PodScheduled" and item.get("status") == "False"
        ],
        **{
            field: [
                _trim_container(item)
                for item in status.get(field) or ()
                if item is starting or _is_in_trouble(item)
            ]
            for field in ("initContainerStatuses", "containerStatuses")
        },
    }


def _trim_finished(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a finished pod, without containers if the pod itself has a reason."""
    reported = {name: status.get(name) for name in ("phase", "reason")}
    if reported["reason"]:
        return {**reported, "message": one_line(str(status.get("message") or ""))}
    return {**reported, **_trim_live(status)}


def _controller(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pod's controller without its uid, because an upstream object only shows names."""
    for reference in meta.get("ownerReferences") or ():
        if reference.get("controller"):
            return {"ownerReferences": [{key: reference.get(key) for key in ("kind", "name", "controller")}]}
    return {}


def _is_in_trouble(container: Mapping[str, Any]) -> bool:
    state = container.get("state") or {}
    end = state.get("terminated") or (container.get("lastState") or {}).get("terminated") or {}
    starting = state.get("waiting", {}).get("reason", "ContainerCreating") in CREATING
    return not starting or bool(end.get("exitCode") and not container.get("ready"))


def _trim_container(container: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: container.get(name) for name in ("name", "image", "ready", "restartCount")}
    return {**kept, **{name: _trim_state(container.get(name) or {}) for name in ("state", "lastState")}}


def _trim_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state with only the line of its message that names the cause; a message may have 4 KiB."""
    return {
        name: {**part, "message": root_cause(part["message"])}
        if name == "terminated" and "message" in part
        else part
        for name, part in state.items()
    }
