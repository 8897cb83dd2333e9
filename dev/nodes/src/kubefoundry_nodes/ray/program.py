"""`python -m kubefoundry_nodes.ray.program --kubeconfig FILE`: the Ray in the pods of RayClusters on simulated nodes.

On each ready pod's own address: Ray's dashboard on 8265 (head), Serve's proxy on 8000. The addresses must end on
this machine (see run). Simulates Ray's autoscaler too, which lives in the head pod.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import time
from dataclasses import dataclass, field
from typing import Final

from kubefoundry_nodes.ray.autoscaler import Autoscaler
from kubefoundry_nodes.ray.ports import Ports
from kubefoundry_nodes.ray.serve import Serve
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError

PODS: Final = Kind("", "v1", "pods", "Pod")
RAY_PODS: Final = {"labelSelector": "ray.io/cluster"}
TICK: Final = 0.1
"""Seconds between two steps of the simulation."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class RayCluster:
    """A RayCluster. `head` is the uid of the head pod that runs Serve, `workers` are the names of ready workers."""

    namespace: str
    name: str
    serve: Serve = field(default_factory=Serve)
    head: str = ""
    workers: set[str] = field(default_factory=set)


class Ray:
    """All RayClusters of the control plane."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._clusters: dict[tuple[str, str], RayCluster] = {}
        self._ports: dict[str, Ports] = {}
        self._autoscaler = Autoscaler(client)

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch())
            tasks.create_task(self._tick())

    async def _watch(self) -> None:
        items, version = await self._client.list(PODS, selector=RAY_PODS)
        for pod in items:
            await self._take(pod, gone=False)
        while True:
            async for event in self._client.watch(
                PODS, resource_version=version, seconds=3000, silence=3000, selector=RAY_PODS
            ):
                if event["type"] == "ERROR":
                    raise ApiError.from_status(410, event["object"])
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    await self._take(event["object"], gone=event["type"] == "DELETED")

    async def _take(self, pod: Object, *, gone: bool) -> None:
        meta = pod["metadata"]
        name = meta["labels"]["ray.io/cluster"]
        cluster = self._clusters.setdefault((meta["namespace"], name), RayCluster(meta["namespace"], name))
        if gone or "deletionTimestamp" in meta or not ready(pod):
            await self._stopped(cluster, pod)
        elif meta["uid"] not in self._ports:
            await self._started(cluster, pod)

    async def _started(self, cluster: RayCluster, pod: Object) -> None:
        meta = pod["metadata"]
        head = meta["labels"]["ray.io/node-type"] == "head"
        if head:
            cluster.head, cluster.serve = meta["uid"], Serve()
        else:
            cluster.workers.add(meta["name"])
        ports = Ports(pod["status"]["podIP"], lambda: cluster.serve, head=head)
        self._ports[meta["uid"]] = ports
        await ports.open()
        log.info("%s/%s answers at %s", meta["namespace"], meta["name"], pod["status"]["podIP"])

    async def _stopped(self, cluster: RayCluster, pod: Object) -> None:
        meta = pod["metadata"]
        cluster.workers.discard(meta["name"])
        if cluster.head == meta["uid"]:
            cluster.head, cluster.serve = "", Serve()
        if ports := self._ports.pop(meta["uid"], None):
            await ports.close()
            log.info("%s/%s is gone", meta["namespace"], meta["name"])

    async def _tick(self) -> None:
        while True:
            for cluster in self._clusters.values():
                if cluster.head:
                    cluster.serve.step(time.monotonic(), cluster.workers)
                    await self._autoscaler.look(
                        cluster.namespace, cluster.name, cluster.serve, cluster.workers
                    )
            await asyncio.sleep(TICK)


def ready(pod: Object) -> bool:
    status = pod.get("status") or {}
    return bool(status.get("podIP")) and any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in status.get("conditions") or ()
    )


async def simulate(kubeconfig: str) -> None:
    """Simulate Ray until SIGTERM or SIGINT."""
    async with Client(credentials.from_kubeconfig(kubeconfig), user_agent="ray") as client:
        simulation = asyncio.ensure_future(Ray(client).run())
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, simulation.cancel)
        await asyncio.wait([simulation])
        if not simulation.cancelled():
            simulation.result()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="kubefoundry_nodes.ray.program")
    parser.add_argument("--kubeconfig", required=True)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    asyncio.run(simulate(parser.parse_args().kubeconfig))
