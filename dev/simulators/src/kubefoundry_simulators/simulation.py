"""A simulated operator over a cluster: one life for each object, whichever version of its CRD is installed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from kubefoundry_simulators.cluster import RETRY_AFTER, Cluster, Refused
from kubefoundry_simulators.life import Life
from kubefoundry_simulators.steps import Object, Operator

log = logging.getLogger(__name__)

CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True, slots=True)
class Settings:
    """speed: how many recorded seconds pass in one.

    services: whether to create children, as the real operators do, and to record what runs.
    """

    speed: float
    services: bool


async def simulate(
    cluster: Cluster,
    operator: Operator,
    settings: Settings,
    installed: Callable[[Object], Awaitable[None]],
) -> None:
    """Simulates the operator until cancelled. `installed` is called with its CRD whenever that changes.

    Objects are simulated in the stored version: a new one means another release of the operator, which restarts with
    the existing objects.
    """
    playing: asyncio.Task[None] | None = None
    played = ""
    async with asyncio.TaskGroup() as tasks:
        async for crd in _installations(cluster, operator.crd):
            version = (
                next((item["name"] for item in crd["spec"]["versions"] if item["storage"]), "") if crd else ""
            )
            if crd:
                await installed(crd)
            if version == played:
                continue
            if playing:
                playing.cancel()
            played = version
            if crd:
                group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
                log.info("simulated %s serves %s/%s", operator.name, group, version)
                api = f"/apis/{group}/{version}"
                playing = tasks.create_task(_play_on(cluster, operator, settings, api, plural))


async def _installations(cluster: Cluster, name: str) -> AsyncIterator[Object | None]:
    """The CRD whenever its spec changes and it is served; None once it is gone."""
    known = None
    async for type_, crd in cluster.watch(CRDS, selector=f"metadata.name={name}"):
        conditions = (crd.get("status") or {}).get("conditions") or []
        established = any(item["type"] == "Established" and item["status"] == "True" for item in conditions)
        if type_ == "DELETED":
            known = None
            yield None
        elif established and "deletionTimestamp" not in crd["metadata"] and crd["spec"] != known:
            known = crd["spec"]
            yield crd


async def _play_on(cluster: Cluster, operator: Operator, settings: Settings, api: str, plural: str) -> None:
    """Continues while the objects cannot be listed: their CRD was just created, or is being deleted."""
    while True:
        try:
            await _play(cluster, operator, settings, api, plural)
        except* Refused as group:
            log.info("simulated %s waits for its objects: %s", operator.name, group.exceptions[0])
        await asyncio.sleep(RETRY_AFTER)


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
