"""Remove the kit's objects at the end of a run in a cluster that others use."""

from __future__ import annotations

import asyncio

from kubefoundry_conformance.cluster.rig import Rig
from kubefoundry_conformance.cluster.settings import MANAGER
from kubefoundry_conformance.cluster.waiting import NotSeen, until
from kubefoundry_sdk._api.kinds import CRDS, MODEL_DEPLOYMENTS, NAMESPACES, Kind, Object
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

ENOUGH = 60.0
"""Longest wait for the end of a namespace, in seconds."""


async def remove(rig: Rig) -> list[str]:
    """Remove the objects of the checks and the rig, and return a message for each object that is left."""
    # The subject still runs, and removes its finalizers itself. The finalizers of a faulty one are removed below.
    await _delete(rig, MODEL_DEPLOYMENTS)
    if rig.subject.running:
        await _wait_for_subject(rig)
        await asyncio.to_thread(rig.subject.kill)
    for kind in (MODEL_DEPLOYMENTS, rig.kind):
        await _delete(rig, kind)
        await _remove_finalizers(rig, kind)
    # Namespaces first: they contain objects of the kinds whose CRDs are removed later.
    messages = [
        await _remove_cluster_object(rig, kind, obj)
        for kind, obj in sorted(rig.cluster_objects, key=lambda pair: pair[0] != NAMESPACES)
    ]
    return [message for message in messages if message]


async def _wait_for_subject(rig: Rig) -> None:
    """Wait until the subject has released the ModelDeployments. A faulty subject never does."""
    try:
        for deployment in await _list(rig, MODEL_DEPLOYMENTS):
            meta = deployment["metadata"]
            await until(rig.api, MODEL_DEPLOYMENTS, meta["name"], meta["namespace"], lambda obj: obj is None)
    except (NotSeen, ApiError, Unreachable):
        pass


async def _remove_cluster_object(rig: Rig, kind: Kind, obj: Object) -> str:
    """Remove an object outside of the namespace. Return a message if it is left, else an empty text."""
    name = obj["metadata"]["name"]
    try:
        if kind == CRDS and (foreign := await _find_foreign_object(rig)):
            return f"CRD {name} stays: {foreign} is somebody else's. Delete it when that is gone"
        await rig.api.delete(kind, name, None, uid=obj["metadata"]["uid"])
        await until(rig.api, kind, name, None, lambda live: live is None, seconds=ENOUGH)
    except (NotSeen, ApiError, Unreachable) as error:
        if not (isinstance(error, ApiError) and error.not_found):
            return f"{kind.kind} {name} is left: {error}. Remove it: kubectl delete {kind.plural} {name}"
    return ""


async def _list(rig: Rig, kind: Kind) -> list[Object]:
    try:
        items, _ = await rig.api.list(kind, rig.namespace)
    except (ApiError, Unreachable):
        return []
    return items


async def _delete(rig: Rig, kind: Kind) -> None:
    for obj in await _list(rig, kind):
        meta = obj["metadata"]
        try:
            await rig.api.delete(kind, meta["name"], meta["namespace"], uid=meta["uid"])
        except (ApiError, Unreachable):
            continue


async def _remove_finalizers(rig: Rig, kind: Kind) -> None:
    """Remove all finalizers of objects in the kit's namespace, where nobody else has objects."""
    for obj in await _list(rig, kind):
        meta = obj["metadata"]
        if meta.get("finalizers"):
            free = [{"op": "remove", "path": "/metadata/finalizers"}]
            try:
                await rig.api.json_patch(kind, meta["name"], meta["namespace"], free, manager=MANAGER)
            except (ApiError, Unreachable):
                continue


async def _find_foreign_object(rig: Rig) -> str:
    """Return the name of an upstream object in another namespace, empty if there is none."""
    async for page, _ in rig.api.pages(rig.kind):
        for obj in page:
            if obj["metadata"].get("namespace") != rig.namespace:
                return f"{rig.kind.kind} {obj['metadata'].get('namespace')}/{obj['metadata']['name']}"
    return ""
