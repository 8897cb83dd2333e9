"""Upstream operators on the simulated clock, by the plans of `kubefoundry_simulators`, and what really serves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import yaml

from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.requests import path
from kubefoundry_sdk.testing._server.requests import Request
from kubefoundry_simulators import dynamo, kaito, kuberay
from kubefoundry_simulators.dynamo_graph import is_too_long
from kubefoundry_simulators.steps import NOW, Operator, Report, Rewrite, Run, Step, failure
from simulation.server import SimulatedServer

USER_AGENT: Final = "operator"

OPERATORS: Final = {
    "dynamo": (
        dynamo.OPERATOR,
        Kind("nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment"),
    ),
    "kuberay": (kuberay.OPERATOR, Kind("ray.io", "v1", "rayservices", "RayService")),
    "kaito": (kaito.OPERATOR, Kind("kaito.sh", "v1beta1", "workspaces", "Workspace")),
}
"""The operator and the kind of each provider."""

BROKEN: Final = {
    "dynamo": frozenset({"failed", "not-ready"}),
    "kuberay": frozenset[str](),
    "kaito": frozenset({"crash-loop", "image-pull", "no-nodes"}),
}
"""Failures with which nothing serves, by provider."""


DEFAULTED: Final = frozenset({"minReplicas", "maxReplicas", "numOfHosts"})
"""Fields of a workload that the API server or an autoscaler sets."""


SERVE: Final = "serve"
"""The part of a KubeRay workload that is YAML."""


@dataclass(slots=True)
class _Life:
    """The state of one upstream object in its operator."""

    planned: Object | None = None
    adopted: bool = False
    leaving: bool = False
    steps: list[Step] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None


class UpstreamOperator:
    """One upstream operator.

    Args:
        server: The API server.
        provider: The name of its provider.
        now: Returns the wall-clock time.
    """

    def __init__(self, server: SimulatedServer, provider: str, now: Callable[[], datetime]) -> None:
        self.operator: Operator
        self.operator, self.kind = OPERATORS[provider]
        self.provider = provider
        self.serving: dict[str, Object] = {}
        """What the pods of each object run, by the object's uid. Nothing else knows."""
        self.runs: list[tuple[str, Object, bool]] = []
        """Name, workload, and whether each role had a pod, of all pods that have run."""
        self.down_until = -1.0
        self._server = server
        self._now = now
        self._lives: dict[str, _Life] = {}
        self._loop = asyncio.get_running_loop()
        self._storage = (self.kind.group, self.kind.plural)
        server.store.listeners[self._storage][self._notice] = None
        self._is_due = False

    def objects(self) -> list[Object]:
        """Return the upstream objects."""
        return self._server.store.all(self._storage)

    def _notice(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        self._is_due = False
        objects = {obj["metadata"]["uid"]: obj for obj in self.objects()}
        for uid in [uid for uid in self._lives if uid not in objects]:
            self._cancel(self._lives.pop(uid))
            self.serving.pop(uid, None)
        for uid, obj in objects.items():
            self._see(uid, self._lives.setdefault(uid, _Life()), obj)

    def _see(self, uid: str, life: _Life, obj: Object) -> None:
        if obj["metadata"].get("deletionTimestamp"):
            if not life.leaving:
                life.leaving = True
                self._begin(uid, life, self.operator.leave(obj))
        elif not life.adopted:
            life.adopted = True
            self._begin(uid, life, self.operator.adopt(obj))
        elif life.planned is None or _trigger(life.planned) != _trigger(obj):
            if life.planned is None and life.steps:
                return
            self._plan(uid, life, obj)

    def _plan(self, uid: str, life: _Life, obj: Object) -> None:
        before, life.planned = life.planned, obj
        if failure(obj) in BROKEN[self.provider]:
            self.serving.pop(uid, None)
        self._begin(uid, life, self.operator.plan(obj, before))

    def _begin(self, uid: str, life: _Life, steps: list[Step]) -> None:
        self._cancel(life)
        life.steps = list(steps)
        self._next(uid, life)

    @staticmethod
    def _cancel(life: _Life) -> None:
        if life.timer:
            life.timer.cancel()
            life.timer = None

    def _next(self, uid: str, life: _Life) -> None:
        if life.steps:
            life.timer = self._loop.call_later(life.steps[0].after, self._fire, uid, life)
        elif life.planned is None and not life.leaving:
            self._notice()

    def _fire(self, uid: str, life: _Life) -> None:
        if self._loop.time() < self.down_until:
            life.timer = self._loop.call_at(self.down_until + 0.01, self._fire, uid, life)
            return
        life.timer = None
        step = life.steps.pop(0)
        live = next((obj for obj in self.objects() if obj["metadata"]["uid"] == uid), None)
        if live is not None:
            self._do(uid, live, step)
        self._next(uid, life)

    def _do(self, uid: str, live: Object, step: Step) -> None:
        match step:
            case Rewrite():
                changed = step.change(live)
                if changed != live:
                    self._put(changed, "")
            case Report():
                status = self._stamped(step.status, live.get("status") or {})
                if status != live.get("status"):
                    self._put({**live, "status": status}, "/status")
            case Run():
                if step.workload and failure(live) not in BROKEN[self.provider]:
                    self.serving[uid] = step.workload
                    self.runs.append((live["metadata"]["name"], plain(step.workload), self.serves(live)))
                else:
                    self.serving.pop(uid, None)

    def _put(self, obj: Object, subresource: str) -> None:
        meta = obj["metadata"]
        url = path(self.kind, meta["namespace"], meta["name"]) + subresource
        query = {"fieldManager": self.operator.manager}
        raw = json.dumps(obj).encode()
        self._server.answer(Request("PUT", url, query, raw, "application/json", user_agent=USER_AGENT))

    def _stamped(self, status: Object, before: Object) -> Object:
        now = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        earlier = {item["type"]: item for item in before.get("conditions") or ()}
        conditions = []
        for item in status.get("conditions") or ():
            old = earlier.get(item["type"], {})
            is_same = old.get("status") == item["status"]
            conditions.append({**item, "lastTransitionTime": old["lastTransitionTime"] if is_same else now})
        filled = {name: now if value == NOW else value for name, value in status.items()}
        return {**filled, "conditions": conditions} if conditions else filled

    def serves(self, obj: Object) -> bool:
        """Check whether the pods of an upstream object serve: each role has one."""
        workload = self.serving.get(obj["metadata"]["uid"])
        if not workload:
            return False
        if self.provider != "dynamo":
            return True
        parts = [part for part in workload.values() if isinstance(part, dict)]
        return all(part.get("replicas", 1) for part in parts)

    def workload(self, obj: Object) -> Object | None:
        """Return what the pods of an object without a history would run, None if they never start."""
        if self.provider == "dynamo" and is_too_long(obj):
            return None
        bare = {**obj, "status": {}}
        bare["metadata"] = {"uid": "", "namespace": "", "generation": 1, **obj["metadata"]}
        runs = [step.workload for step in self.operator.plan(bare, None) if isinstance(step, Run)]
        return plain(runs[0]) if runs else None


def plain(value: Any) -> Any:
    """Return a workload without the empty maps that operators add, and the worker counts that autoscalers change."""
    if isinstance(value, dict):
        kept = {
            name: parsed(child) if name == SERVE else plain(child)
            for name, child in value.items()
            if name not in DEFAULTED and not (name == "replicas" and "groupName" in value)
        }
        return {name: child for name, child in kept.items() if child != {}}
    return [plain(child) for child in value] if isinstance(value, list) else value


@lru_cache(maxsize=1024)
def parsed(text: str | None) -> Any:
    """Return the content of a Serve configuration, in which the order of keys says nothing."""
    return yaml.safe_load(text) if text else None


def _trigger(obj: Object) -> tuple[Any, ...]:
    return obj["metadata"]["generation"], failure(obj)
