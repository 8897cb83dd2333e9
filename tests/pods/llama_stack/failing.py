"""LlamaStackDistributions that cannot serve: followed until each has been refused, some through more failures, and
deleted as soon as nothing more is wanted of them, because each start of a server takes seconds of both cores."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from kubefoundry_llamastack.names import INSTANCE_LABEL, LLSD, PODS
from kubefoundry_local.suite import Suite
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from pods.llama_stack.distributions import STARTED
from support.llamastack import reason

AGAIN: Final = 2
"""Times that a container fails again while its CR is watched: once at once, and after each back-off."""

AT_ONCE: Final = {"terminationGracePeriodSeconds": 0}
"""podOverrides of what is deleted while it fails: process 1 of a container need not heed SIGTERM."""

Shown = tuple[str, str, str]


@dataclass(slots=True)
class Refusal:
    """uid: of the CR. status: the first that has the reason. shown: what a user sees from then on, each change once.
    failures: since then, of containers of its pod. objects: all of its namespace at that moment, where wanted."""

    uid: str
    status: Object
    shown: list[Shown]
    failures: int = 0
    objects: str = ""

    @property
    def over(self) -> bool:
        return self.failures >= AGAIN


@dataclass(slots=True)
class Followed:
    """reasons: of ExternalProvidersReady, in which each CR ends, by name. watched: the names of those that fail AGAIN
    times more. looked: kinds to list when one of `secretive` is refused, and at the end. left: what there was then;
    Events outlive what they are about, and may be written a moment after the status."""

    suite: Suite
    namespace: str
    reasons: Mapping[str, str]
    watched: Collection[str]
    secretive: Collection[str] = ()
    looked: str = ""
    refusals: dict[str, Refusal] = field(default_factory=dict)
    last: dict[str, Object] = field(default_factory=dict)
    left: str = ""
    _failed: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def refusal(self, name: str) -> Refusal:
        """That of a CR; fails with its last status if there was none."""
        assert name in self.refusals, self.last.get(name)
        return self.refusals[name]

    def unsteady(self) -> dict[str, list[Shown]]:
        """What a user saw of those that were watched and did not hold still. Fails unless each failed AGAIN times."""
        assert {name: self.refusal(name).failures for name in self.watched} == dict.fromkeys(
            self.watched, AGAIN
        )
        return {name: one.shown for name in self.watched if len((one := self.refusal(name)).shown) > 1}

    async def run(self) -> None:
        """Until all have been refused, and then until those that are watched have failed again; or in vain."""
        admin = credentials.from_kubeconfig(str(self.suite.plane.kubeconfig))
        async with Client(admin, user_agent="test") as api, asyncio.TaskGroup() as group:
            following = [
                group.create_task(self._statuses(api)),
                group.create_task(self._pods(api)),
            ]
            with contextlib.suppress(TimeoutError):
                await self._until(self.reasons, 0)
                await self._until(self.watched, AGAIN)
            for one in following:
                one.cancel()
            if self.looked:
                self.left = await asyncio.to_thread(self._objects)

    async def _until(self, names: Collection[str], failures: int) -> None:
        """Raises TimeoutError."""
        async with asyncio.timeout(STARTED):
            while not all(
                name in self.refusals and self.refusals[name].failures >= failures for name in names
            ):
                self._changed.clear()
                await self._changed.wait()

    async def _statuses(self, api: Client) -> None:
        async for obj in states(api, LLSD, self.namespace):
            name, status = obj["metadata"]["name"], obj.get("status") or {}
            self.last[name] = status
            one = self.refusals.get(name)
            if one is None and reason(status, "ExternalProvidersReady") == self.reasons[name]:
                one = self.refusals[name] = Refusal(obj["metadata"]["uid"], status, [shown(status)])
                if name in self.secretive:
                    one.objects = await asyncio.to_thread(self._objects)
                if name not in self.watched:
                    await api.delete(LLSD, name, self.namespace, uid=one.uid)
                self._changed.set()
            elif one and name in self.watched and not one.over and shown(status) != one.shown[-1]:
                one.shown.append(shown(status))

    async def _pods(self, api: Client) -> None:
        async for pod in states(api, PODS, self.namespace):
            name = pod["metadata"]["labels"][INSTANCE_LABEL]
            before = self._failed.get(name, set())
            failing = self._failed[name] = failures(pod)
            one = self.refusals.get(name)
            if one and name in self.watched and not one.over and failing - before:
                one.failures += 1
                if one.over:
                    await api.delete(LLSD, name, self.namespace, uid=one.uid)
                self._changed.set()

    def _objects(self) -> str:
        kubectl = self.suite.plane.kubectl
        return kubectl("get", self.looked, "-n", self.namespace, "-o", "json").stdout


async def states(api: Client, kind: Kind, namespace: str) -> AsyncIterator[Object]:
    """Each object of the kind as it is, and as a watch shows it at each change."""
    items, version = await api.list(kind, namespace)
    for item in items:
        yield item
    async for event in api.watch(
        kind, namespace, resource_version=version, seconds=2 * int(STARTED), silence=STARTED
    ):
        if event["type"] in ("ADDED", "MODIFIED"):
            yield event["object"]


def failures(pod: Object) -> set[tuple[str, int]]:
    """Containers that wait because they have just failed, and how often they had been started again before; a failed
    pull shows until the next one."""
    status = pod.get("status") or {}
    return {
        (one["name"], one["restartCount"])
        for key in ("initContainerStatuses", "containerStatuses")
        for one in status.get(key) or ()
        if (one["state"].get("waiting") or {}).get("reason") in ("CrashLoopBackOff", "ErrImagePull")
    }


def shown(status: Object) -> Shown:
    """What a user sees of a CR's state."""
    return (
        str(status.get("phase")),
        reason(status, "ExternalProvidersReady"),
        reason(status, "DeploymentReady"),
    )
