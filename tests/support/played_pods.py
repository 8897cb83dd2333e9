"""A simulated node: pods that Kubernetes' own controllers create become ready at once, or fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kubefoundry_sdk._api.kinds import PODS, Object
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support import pods

Fate = Callable[[Object], Object | None]
"""Returns the status that the kubelet reports for a new pod. None leaves the pod unchanged."""


def ready_status(pod: Object) -> Object:
    """Return the status of a ready pod."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": pods.SINCE}
    return {**pods.ready(), "phase": "Running", "conditions": [ready]}


@asynccontextmanager
async def node(client: Client, namespace: str, fate: Fate = ready_status) -> AsyncIterator[None]:
    """Report a status for every pod of the namespace until the block ends."""

    async def report_all() -> None:
        listed, version = await client.list(PODS, namespace)
        for pod in listed:
            await _report(client, pod, fate)
        async for event in client.watch(PODS, namespace, resource_version=version, seconds=600, silence=600):
            if event["type"] == "ADDED":
                await _report(client, event["object"], fate)

    task = asyncio.create_task(report_all())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _report(client: Client, pod: Object, fate: Fate) -> None:
    if (status := fate(pod)) is None:
        return
    meta = pod["metadata"]
    change = [{"op": "add", "path": "/status", "value": status}]
    try:
        await client.json_patch(PODS, f"{meta['name']}/status", meta["namespace"], change, manager="kubelet")
    except ApiError as error:
        # The pod may have been deleted meanwhile.
        if not error.not_found:
            raise
