"""Simulate Ray's autoscaler: add workers for pending engines, remove idle workers (ray/autoscaler/v2, 2.56).

It writes the same fields as the real one: a worker group's `replicas`, and `scaleStrategy.workersToDelete`.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any, Final

from kubefoundry_nodes.ray.serve import Serve
from kubefoundry_sdk._api.kinds import Kind
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError

RAY_CLUSTERS: Final = Kind("ray.io", "v1", "rayclusters", "RayCluster")
IDLE: Final = 3.0
"""Seconds without an engine after which a worker is removed; Ray's own default is 60."""

GROUP: Final = "/spec/workerGroupSpecs/0"


class Autoscaler:
    """Scales all RayClusters, and remembers since when each worker has been idle."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._idle: dict[tuple[str, str], dict[str, float]] = {}

    async def look(self, namespace: str, name: str, serve: Serve, workers: Collection[str]) -> None:
        """Request another number of workers if necessary."""
        if serve.config is None:
            return
        now = time.monotonic()
        busy = {engine.worker for engine in serve.engines}
        before = self._idle.get((namespace, name), {})
        idle = {worker: before.get(worker, now) for worker in workers if worker not in busy}
        self._idle[namespace, name] = idle
        surplus = max(0, len(workers) - max(1, serve.requested))
        leave = sorted(worker for worker, since in idle.items() if now - since >= IDLE)[:surplus]
        if len(workers) < serve.requested and not serve.failure:
            await self._ask(namespace, name, serve.requested, [])
        elif leave:
            await self._ask(namespace, name, len(workers) - len(leave), leave)

    async def _ask(self, namespace: str, name: str, replicas: int, leave: list[str]) -> None:
        """Request a number of workers and the removal of some, if the autoscaler is on and has not done so."""
        try:
            spec = (await self._client.get(RAY_CLUSTERS, name, namespace))["spec"]
            if not spec.get("enableInTreeAutoscaling"):
                return
            group = spec["workerGroupSpecs"][0]
            desired = {"replicas": replicas, "scaleStrategy": {"workersToDelete": leave}}
            current = {
                "replicas": group["replicas"],
                "scaleStrategy": {
                    "workersToDelete": (group.get("scaleStrategy") or {}).get("workersToDelete", [])
                },
            }
            if current != desired:
                operations: list[dict[str, Any]] = [
                    {"op": "add", "path": f"{GROUP}/{field}", "value": value}
                    for field, value in desired.items()
                ]
                await self._client.json_patch(
                    RAY_CLUSTERS, name, namespace, operations, manager="ray-autoscaler"
                )
        except ApiError as error:
            # The cluster was deleted meanwhile.
            if error.code != 404:
                raise
