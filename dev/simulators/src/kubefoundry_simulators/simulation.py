"""A simulated operator over a cluster: one Life for each object, in the stored version of the installed CRD."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from kubefoundry_simulators.cluster import CRDS, RETRY_AFTER, Cluster, Refused
from kubefoundry_simulators.life import Life
from kubefoundry_simulators.steps import Object, Operator

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of all simulated operators.

    Attributes:
        speed: Recorded seconds that pass in one second.
        services: Whether to create Services, as the real operators do, and to record the running workload.
    """

    speed: float
    services: bool


async def simulate(
    cluster: Cluster,
    operator: Operator,
    settings: Settings,
    on_crd: Callable[[Object], Awaitable[None]] | None,
) -> None:
    """Simulate the operator until cancelled.

    Objects are simulated in the stored version of the CRD. Another stored version stands for another release of the
    operator, which restarts with the existing objects.

    Args:
        cluster: The API server.
        operator: The simulated operator.
        settings: Speed and children.
        on_crd: Called with the operator's CRD whenever its spec changes.
    """
    task: asyncio.Task[None] | None = None
    simulated_version = ""
    async with asyncio.TaskGroup() as tasks:
        async for crd in _installations(cluster, operator.crd):
            version = (
                next((item["name"] for item in crd["spec"]["versions"] if item["storage"]), "") if crd else ""
            )
            if crd and on_crd:
                await on_crd(crd)
            if version == simulated_version:
                continue
            if task:
                task.cancel()
            simulated_version = version
            if crd:
                group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
                log.info("simulated %s serves %s/%s", operator.name, group, version)
                api = f"/apis/{group}/{version}"
                task = tasks.create_task(_simulate_forever(cluster, operator, settings, api, plural))


async def _installations(cluster: Cluster, name: str) -> AsyncIterator[Object | None]:
    """Yield the CRD whenever it is served and its spec has changed, and None after its deletion."""
    last_spec = None
    async for type_, crd in cluster.watch(CRDS, selector=f"metadata.name={name}"):
        conditions = (crd.get("status") or {}).get("conditions") or []
        established = any(item["type"] == "Established" and item["status"] == "True" for item in conditions)
        if type_ == "DELETED":
            last_spec = None
            yield None
        elif established and "deletionTimestamp" not in crd["metadata"] and crd["spec"] != last_spec:
            last_spec = crd["spec"]
            yield crd


async def _simulate_forever(
    cluster: Cluster, operator: Operator, settings: Settings, api: str, plural: str
) -> None:
    """Simulate, and start again if the objects cannot be listed: their CRD is new, or is being deleted."""
    while True:
        try:
            await _simulate_objects(cluster, operator, settings, api, plural)
        except* Refused as group:
            log.info("simulated %s waits for its objects: %s", operator.name, group.exceptions[0])
        await asyncio.sleep(RETRY_AFTER)


async def _simulate_objects(
    cluster: Cluster, operator: Operator, settings: Settings, api: str, plural: str
) -> None:
    """Run a Life for each object of the collection. Raise Refused if the collection cannot be listed."""
    lives: dict[str, Life] = {}
    async with asyncio.TaskGroup() as tasks:
        running: dict[str, asyncio.Task[None]] = {}
        async for type_, object_ in cluster.watch(f"{api}/{plural}"):
            meta = object_["metadata"]
            uid = meta["uid"]
            if type_ == "DELETED":
                lives.pop(uid, None)
                task = running.pop(uid, None)
                if task:
                    task.cancel()
            elif uid in lives:
                lives[uid].see(object_)
            else:
                path = f"{api}/namespaces/{meta['namespace']}/{plural}/{meta['name']}"
                life = Life(cluster, operator, path, object_, settings.speed, settings.services)
                lives[uid] = life
                running[uid] = tasks.create_task(life.run())
