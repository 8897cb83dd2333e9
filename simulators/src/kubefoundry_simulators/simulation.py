"""A simulated operator over a cluster: one life an object, whichever version of its CRD is installed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from kubefoundry_simulators.cluster import Cluster, Refused
from kubefoundry_simulators.life import Life
from kubefoundry_simulators.steps import Object, Operator

log = logging.getLogger(__name__)

CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True, slots=True)
class Settings:
    """speed: how many recorded seconds pass in one.

    services: whether children are made, as the real ones do, and told what runs.
    """

    speed: float
    services: bool


async def simulate(
    cluster: Cluster,
    operator: Operator,
    settings: Settings,
    installed: Callable[[Object], Awaitable[None]],
) -> None:
    """Play the operator until cancelled. `installed` is told of its CRD, each time that it is found."""
    while True:
        crd = await _established(cluster, operator.crd)
        await installed(crd)
        version = next(item["name"] for item in crd["spec"]["versions"] if item["storage"])
        group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
        log.info("simulated %s plays with %s/%s", operator.name, group, version)
        try:
            await _play(cluster, operator, settings, f"/apis/{group}/{version}", plural)
        except* Refused as group:
            # the CRD went, and with it the watch and every life
            log.info("simulated %s waits for its CRD: %s", operator.name, group.exceptions[0])


async def _established(cluster: Cluster, name: str) -> Object:
    async for type_, crd in cluster.watch(CRDS, selector=f"metadata.name={name}"):
        conditions = (crd.get("status") or {}).get("conditions") or []
        established = any(item["type"] == "Established" and item["status"] == "True" for item in conditions)
        if type_ != "DELETED" and established and "deletionTimestamp" not in crd["metadata"]:
            return crd
    raise AssertionError("a watch does not end")


async def _play(cluster: Cluster, operator: Operator, settings: Settings, api: str, plural: str) -> None:
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
