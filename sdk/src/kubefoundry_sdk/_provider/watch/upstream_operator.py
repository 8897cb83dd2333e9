"""Watches whether the upstream operator is up, as far as the provider's permissions allow (contract §3).

The watch covers its Deployment and its leader election Lease in the namespaces that an administrator has named or
labelled (`trusted_namespaces`). If the watch is not permitted, or no object of these names exists, nothing is
reported.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, repeat
from typing import Final

from kubefoundry_sdk._api.kinds import DEPLOYMENTS, LEASES, NAMESPACES, Kind, Object
from kubefoundry_sdk._cluster import logs
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
from kubefoundry_sdk._cluster.permission import may
from kubefoundry_sdk._cluster.reflector import Sink, reflect
from kubefoundry_sdk._cluster.retry import wait
from kubefoundry_sdk._cluster.skipped import skipped
from kubefoundry_sdk._provider.upstream_kind import Operator
from kubefoundry_sdk._provider.watch.operator_settings import OperatorSettings
from kubefoundry_sdk._provider.watch.trusted_namespaces import SELECTOR, TrustedNamespaces
from kubefoundry_sdk._runtime.lease import expired
from kubefoundry_sdk._runtime.store import Key, key_of

log = logging.getLogger(__name__)

PERMISSION_CHECKS: Final = (1.0, 5.0, 15.0, 60.0, 300.0)
"""Seconds between checks for the permission, which an administrator may grant at any time."""

DENIALS: Final = 2
"""Denials until the permission counts as missing: an API server that has just started has not loaded its roles
yet."""

Judge = Callable[[Object, float], str | None]
"""Returns the problem of an object that has not changed for that many seconds, or None."""


def unavailable(deployment: Object, age: float) -> str | None:
    """Return why a Deployment does not show a running operator, or None. The age is not used."""
    if (deployment.get("status") or {}).get("availableReplicas"):
        return None
    return f"Deployment {_where(deployment)} has no available replica"


def unheld(lease: Object, age: float) -> str | None:
    """Return why a Lease does not show a running operator, or None."""
    if not expired(lease, age):
        return None
    return f"Lease {_where(lease)} has no holder (delete it if the operator runs without leader election)"


def _where(obj: Object) -> str:
    return "/".join(key_of(obj))


class Evidence:
    """The sink of one kind's objects that show whether the operator is up.

    An object's age does not grow while the watch receives nothing, because a change would not be seen. `judge`
    returns the problem of an object, or None. `clock` returns monotonic seconds. `trusted` checks whether objects in
    that namespace count.
    """

    def __init__(self, judge: Judge, clock: Callable[[], float], trusted: Callable[[str], bool]) -> None:
        self._judge = judge
        self._trusted = trusted
        self._clock = clock
        self._seen_at = clock()
        self._objects: dict[Key, tuple[Object, float]] = {}

    def replace(self, objects: Iterable[Object], resource_version: str, *, rewound: bool = False) -> None:
        """Take a complete list of objects. An unchanged object keeps the time at which it was seen first."""
        before, self._objects = self._objects, {}
        for obj in objects:
            try:
                entry = before.get(key_of(obj))
                if entry and entry[0] == obj:
                    self._objects[key_of(obj)] = entry
                else:
                    self.put(obj)
            except Exception as error:
                skipped(obj, error)

    def put(self, obj: Object) -> None:
        """Take an added or changed object."""
        self._objects[key_of(obj)] = (obj, self._clock())

    def remove(self, obj: Object) -> None:
        """Take the last state of a deleted object."""
        self._objects.pop(key_of(obj), None)

    def clear(self) -> None:
        """Forget all objects."""
        self._objects.clear()

    def alive(self) -> None:
        """Record that the watch is alive."""
        self._seen_at = self._clock()

    @property
    def seen(self) -> list[Object]:
        """The objects in trusted namespaces."""
        return [obj for (namespace, _), (obj, _) in self._objects.items() if self._trusted(namespace)]

    def down(self) -> str | None:
        """Return the first problem if every object has one, or None. One running operator of several is enough."""
        problems = [
            self._judge(obj, self._seen_at - since)
            for (namespace, _), (obj, since) in sorted(self._objects.items())
            if self._trusted(namespace)
        ]
        return problems[0] if problems and all(problems) else None


class OperatorWatch:
    """The watch of the upstream operator's Deployments and Leases.

    `changed` is called when the evidence changes; `settings` receive the Deployments.
    """

    def __init__(
        self,
        client: Client,
        operator: Operator,
        settings: OperatorSettings | None,
        changed: Callable[[], None],
        *,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._settings = settings
        self._changed = changed
        self._trusted = TrustedNamespaces(operator.namespaces, self._evaluate)
        self._deployments = Evidence(unavailable, clock, self._trusted.trusts)
        self._evidence = {(DEPLOYMENTS, operator.deployment): self._deployments}
        if operator.lease:
            self._evidence[LEASES, operator.lease] = Evidence(unheld, clock, self._trusted.trusts)
        self._listed = False
        self.seen = False
        """Whether any object of the operator exists in a trusted namespace."""
        self.down: str | None = None
        """The evidence that it is down, or None."""

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for (kind, name), evidence in self._evidence.items():
                group.create_task(self._follow_evidence(kind, name, evidence))
            group.create_task(self._follow_namespaces())

    async def _follow_namespaces(self) -> None:
        selector = {"labelSelector": SELECTOR}
        await self._follow(NAMESPACES, "", self._trusted, selector, lambda: None, self._trusted.refused)

    async def _follow_evidence(self, kind: Kind, name: str, evidence: Evidence) -> None:
        def evaluate() -> None:
            self._listed = self._listed or kind == DEPLOYMENTS
            self._evaluate()

        def alive() -> None:
            evidence.alive()
            evaluate()

        def refused() -> None:
            evidence.clear()
            evaluate()

        await self._follow(kind, name, evidence, {"fieldSelector": f"metadata.name={name}"}, alive, refused)

    async def _follow(
        self,
        kind: Kind,
        name: str,
        sink: Sink,
        selector: Mapping[str, str],
        alive: Callable[[], None],
        refused: Callable[[], None],
    ) -> None:
        """Follow the objects once that is permitted. `name` is their name; empty for any."""
        denied = 0
        for delay in chain(PERMISSION_CHECKS, repeat(PERMISSION_CHECKS[-1])):
            try:
                if await may(self._client, "watch", kind, name):
                    break
            except (ApiError, Unreachable) as error:
                about = logs.values(operator=f"{kind.kind} {name}", error=str(error))
                log.info("cannot check whether an operator may be watched", extra=about)
                await asyncio.sleep(wait(delay, error))
                continue
            denied += 1
            if denied == DENIALS:
                refused()
            await asyncio.sleep(delay)
        await reflect(self._client, kind, sink, selector=selector, alive=alive, refused=refused)

    def _evaluate(self) -> None:
        if not self._trusted.is_known:
            return
        if self._settings and self._listed:
            self._settings.see(self._deployments.seen, str(self._trusted))
        seen = any(evidence.seen for evidence in self._evidence.values())
        down = next((problem for evidence in self._evidence.values() if (problem := evidence.down())), None)
        if (seen, down) != (self.seen, self.down):
            self.seen, self.down = seen, down
            self._changed()
