"""The life of one upstream object under a simulated operator, from adoption to deletion."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kubefoundry_simulators.cluster import JSON_PATCH, MERGE_PATCH, Cluster, Refused
from kubefoundry_simulators.steps import (
    NOW,
    RUNS_ANNOTATION,
    Create,
    Delete,
    Object,
    Operator,
    Report,
    Rewrite,
    Run,
    Step,
    failure,
)

log = logging.getLogger(__name__)

LEFTOVER_PAUSE: Final = 0.2
"""Seconds until the next look at a missing object, until a refused write is repeated, or until the next look at a
Service that the garbage collector has to delete."""

LONGEST_PAUSE: Final = 5.0
"""Seconds between two looks at an object that stays missing, or between two refused writes, at most."""


class Gone(Exception):
    """The object, or an object that it needs, does not exist."""


class Life:
    """Run an operator's plans on one object, from the first event to the deletion."""

    def __init__(
        self, cluster: Cluster, operator: Operator, path: str, object_: Object, speed: float, services: bool
    ) -> None:
        self._cluster = cluster
        self._operator = operator
        self._path = path
        self._speed = speed
        self._services = services
        self._object = object_
        self._news = asyncio.Event()

    def see(self, object_: Object) -> None:
        """Take a state of the object from the watch, if it is newer."""
        if _version(object_) > _version(self._object):
            self._object = object_
            self._news.set()

    async def run(self) -> None:
        """Run until the object is deleted. The caller cancels the task if the watch reports the deletion first.

        An API server that has just started answers 404 for a moment, even for existing objects.
        """
        pause = LEFTOVER_PAUSE
        while not await self._live():
            # This watch has no event for the creation of a missing object, so only another attempt finds it.
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _live(self) -> bool:
        """Run the plans from adoption to deletion. Return False if an object was missing."""
        try:
            await self._perform(self._operator.adopt(self._object))
            planned: Object | None = None
            while not self._leaving:
                before, planned = planned, self._object
                await self._perform(self._operator.plan(planned, before))
                while not self._leaving and _trigger(self._object) == _trigger(planned):
                    await self._next()
            for step in self._operator.leave(self._object):
                await asyncio.sleep(step.after / self._speed)
                pause = LEFTOVER_PAUSE
                while not await self._try(step):
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE)
        except Gone:
            return False
        except Exception:
            # An error about one object must not stop the other objects.
            log.exception("simulated %s gives up on %s", self._operator.name, self._path)
        return True

    @property
    def _leaving(self) -> bool:
        return "deletionTimestamp" in self._object["metadata"]

    async def _next(self) -> None:
        self._news.clear()
        await self._news.wait()

    async def _perform(self, steps: list[Step]) -> None:
        """Perform the steps. Repeat a refused write as operators do, and skip the rest after the object's deletion.

        Of an outdated plan, only a change of the live object is repeated.
        """
        planned = _trigger(self._object)
        for step in steps:
            await self._pause(step.after / self._speed)
            pause = LEFTOVER_PAUSE
            while not self._leaving and not await self._try(step):
                if not isinstance(step, Rewrite) and _trigger(self._object) != planned:
                    return
                await self._pause(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            if self._leaving:
                return

    async def _try(self, step: Step) -> bool:
        """Write a step, and return whether the API server accepted it. Raise Gone if an object is missing."""
        try:
            await self._write(step)
        except Refused as refusal:
            if refusal.status == 404:
                raise Gone from refusal
            log.warning("simulated %s is refused at %s: %s", self._operator.name, self._path, refusal)
            return False
        return True

    async def _pause(self, seconds: float) -> None:
        """Wait, but not longer than until the object is being deleted."""
        try:
            async with asyncio.timeout(seconds):
                while not self._leaving:
                    await self._next()
        except TimeoutError:
            pass

    async def _write(self, step: Step) -> None:
        match step:
            case Rewrite():
                await self._rewrite(step)
            case Report():
                await self._report(step.status)
            case Create() if self._services:
                await self._create(step.service)
            case Delete() if self._services:
                await self._delete(step.service)
            case Run() if self._services:
                await self._run(step)

    async def _rewrite(self, step: Rewrite) -> None:
        """Update the object. After a conflict, wait for the newer state and try again."""
        while True:
            base = self._object
            changed = step.change(base)
            if changed == base:
                return
            try:
                self.see(await self._send("PUT", self._path, changed))
                return
            except Refused as refusal:
                if refusal.status != 409:
                    raise
            while self._object is base:
                await self._next()

    async def _report(self, status: Object) -> None:
        live = self._object.get("status") or {}
        stamped = _stamped(status, live)
        if _timeless(stamped) == _timeless(live):
            return
        # The uid protects an object of the same name that was created after this plan began.
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": self._object["metadata"]["uid"]},
            {"op": "add", "path": "/status", "value": stamped},
        ]
        self.see(await self._send("PATCH", f"{self._path}/status", patch, content=JSON_PATCH))

    async def _create(self, service: Object) -> None:
        """Create a Service. Wait while another owner's Service has the name, as after a recreation."""
        path = f"/api/v1/namespaces/{service['metadata']['namespace']}/services"
        while not self._leaving:
            try:
                await self._send("POST", path, service)
                return
            except Refused as refusal:
                if refusal.status != 409:
                    raise
            if await self._owns(f"{path}/{service['metadata']['name']}"):
                return
            await self._pause(LEFTOVER_PAUSE)

    async def _owns(self, path: str) -> bool:
        """Check whether the object at the path exists and has this object as an owner."""
        try:
            child = await self._cluster.get(path)
        except Refused as refusal:
            if refusal.status == 404:
                return False
            raise
        owners = child["metadata"].get("ownerReferences") or []
        return any(owner["uid"] == self._object["metadata"]["uid"] for owner in owners)

    async def _delete(self, name: str) -> None:
        namespace = self._object["metadata"]["namespace"]
        try:
            await self._send("DELETE", f"/api/v1/namespaces/{namespace}/services/{name}", None)
        except Refused as refusal:
            if refusal.status != 404:
                raise

    async def _run(self, step: Run) -> None:
        workload = dict(step.workload)
        if step.config_map:
            namespace = self._object["metadata"]["namespace"]
            path = f"/api/v1/namespaces/{namespace}/configmaps/{step.config_map}"
            workload["config"] = (await self._cluster.get(path)).get("data") or {}
        annotations = {RUNS_ANNOTATION: json.dumps(workload, sort_keys=True)}
        self.see(
            await self._send(
                "PATCH", self._path, {"metadata": {"annotations": annotations}}, content=MERGE_PATCH
            )
        )

    async def _send(self, method: str, path: str, body: Any, **options: str) -> Object:
        return await self._cluster.send(method, path, body, manager=self._operator.manager, **options)


def _trigger(object_: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the generation and the requested failure. An operator plans again if one of them changes."""
    return object_["metadata"]["generation"], failure(object_)


def _version(object_: Mapping[str, Any]) -> int:
    """Return the resource version as a number. Kubernetes 1.35 documents that those of one resource are ordered."""
    return int(object_["metadata"]["resourceVersion"])


def _stamped(status: Object, live: Mapping[str, Any]) -> Object:
    """Return the status with timestamps. A condition of the same status keeps its transition time."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    live_conditions = {item["type"]: item for item in live.get("conditions") or []}
    conditions = []
    for item in status.get("conditions") or []:
        before = live_conditions.get(item["type"], {})
        same = before.get("status") == item["status"]
        conditions.append({**item, "lastTransitionTime": before["lastTransitionTime"] if same else now})
    filled = {name: now if value == NOW else value for name, value in status.items()}
    return {**filled, "conditions": conditions} if conditions else filled


def _timeless(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status without the time of the write, which is no reason to write."""
    return {name: value for name, value in status.items() if name != "lastUpdateTime"}
