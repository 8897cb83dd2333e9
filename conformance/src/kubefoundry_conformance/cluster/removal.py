"""The end of a run in a cluster that others use: nothing of the kit is left."""

from __future__ import annotations

import asyncio

from kubefoundry_conformance.cluster.rig import MANAGER, Rig
from kubefoundry_conformance.cluster.waiting import NotSeen, until
from kubefoundry_sdk.api.kinds import CRDS, MODEL_DEPLOYMENTS, NAMESPACES, Kind, Object
from kubefoundry_sdk.cluster.errors import ApiError, Unreachable

ENOUGH = 60.0
"""Seconds for the end of a namespace."""


async def remove(rig: Rig) -> list[str]:
    """Removes what the checks and the rig have made; what is left, a line each."""
    left = []
    # The subject still runs, and takes its finalizers away itself; what a faulty one leaves is freed after it.
    await _delete(rig, MODEL_DEPLOYMENTS)
    if rig.subject.running:
        try:
            for one in await _listed(rig, MODEL_DEPLOYMENTS):
                meta = one["metadata"]
                await until(
                    rig.api, MODEL_DEPLOYMENTS, meta["name"], meta["namespace"], lambda obj: obj is None
                )
        except (NotSeen, ApiError, Unreachable):
            pass
        await asyncio.to_thread(rig.subject.kill)
    for kind in (MODEL_DEPLOYMENTS, rig.kind):
        await _delete(rig, kind)
        await _free(rig, kind)
    # Namespaces first: what is in them is of the kinds that go later.
    for kind, made in sorted(rig.made, key=lambda one: one[0] != NAMESPACES):
        name = made["metadata"]["name"]
        try:
            if kind == CRDS and (others := await _of_others(rig)):
                left.append(f"CRD {name} stays: {others} is somebody else's. Delete it when that is gone")
                continue
            await rig.api.delete(kind, name, None, uid=made["metadata"]["uid"])
            await until(rig.api, kind, name, None, lambda obj: obj is None, seconds=ENOUGH)
        except (NotSeen, ApiError, Unreachable) as error:
            if not (isinstance(error, ApiError) and error.not_found):
                left.append(
                    f"{kind.kind} {name} is left: {error}. Remove it: kubectl delete {kind.plural} {name}"
                )
    return left


async def _listed(rig: Rig, kind: Kind) -> list[Object]:
    try:
        items, _ = await rig.api.list(kind, rig.namespace)
    except (ApiError, Unreachable):
        return []
    return items


async def _delete(rig: Rig, kind: Kind) -> None:
    for one in await _listed(rig, kind):
        meta = one["metadata"]
        try:
            await rig.api.delete(kind, meta["name"], meta["namespace"], uid=meta["uid"])
        except (ApiError, Unreachable):
            continue


async def _free(rig: Rig, kind: Kind) -> None:
    """Takes the finalizers away: nobody else has objects in this namespace."""
    for one in await _listed(rig, kind):
        meta = one["metadata"]
        if meta.get("finalizers"):
            free = [{"op": "remove", "path": "/metadata/finalizers"}]
            try:
                await rig.api.json_patch(kind, meta["name"], meta["namespace"], free, manager=MANAGER)
            except (ApiError, Unreachable):
                continue


async def _of_others(rig: Rig) -> str:
    """The name of an object of the upstream kind in another namespace, empty where there is none."""
    async for page, _ in rig.api.pages(rig.kind):
        for one in page:
            if one["metadata"].get("namespace") != rig.namespace:
                return f"{rig.kind.kind} {one['metadata'].get('namespace')}/{one['metadata']['name']}"
    return ""
