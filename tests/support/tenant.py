"""A user with nothing but a RoleBinding to `edit`, and a stand-in for the controller of Deployments."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from kubefoundry_local.suite import PROBE, Suite
from kubefoundry_sdk._api.kinds import DEPLOYMENTS, Kind, Object
from kubefoundry_sdk._cluster import credentials
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError
from support.kinds import UPSTREAM
from support.users import new_user
from support.waiting import SECONDS

KINDS = {**UPSTREAM, "direct": DEPLOYMENTS}


@asynccontextmanager
async def tenant(suite: Suite, namespace: str, folder: Path) -> AsyncIterator[Client]:
    """The client of a new account that may edit that namespace and nothing else."""
    plane = suite.plane
    kubeconfig = new_user(plane, namespace, "tenant", folder)
    account = f"--serviceaccount={namespace}:tenant"
    plane.kubectl("create", "rolebinding", "tenant", "--clusterrole=edit", account, "-n", namespace)
    async with Client(credentials.from_kubeconfig(str(kubeconfig)), user_agent="tenant") as client:
        for kind in KINDS.values():
            await _until_allowed(client, kind, namespace)
        yield client


async def _until_allowed(client: Client, kind: Kind, namespace: str) -> None:
    """The API server learns of the binding, and of the aggregated roles, in its own time."""
    async with asyncio.timeout(SECONDS):
        while True:
            with suppress(ApiError):
                await client.list(kind, namespace)
                return
            await asyncio.sleep(PROBE)


@asynccontextmanager
async def deployments_available(api: Client, namespace: str) -> AsyncIterator[None]:
    """Make each Deployment of the namespace available as soon as it changes, inside the block."""
    task = asyncio.create_task(_keep_available(api, namespace))
    try:
        yield
    finally:
        task.cancel()


async def _keep_available(api: Client, namespace: str) -> None:
    items, version = await api.list(DEPLOYMENTS, namespace)
    for item in items:
        await _make_available(api, item)
    async for event in api.watch(DEPLOYMENTS, namespace, resource_version=version, seconds=600, silence=600):
        if event["type"] in ("ADDED", "MODIFIED"):
            await _make_available(api, event["object"])


async def _make_available(api: Client, deployment: Object) -> None:
    meta, spec = deployment["metadata"], deployment["spec"]
    seen = (deployment.get("status") or {}).get("observedGeneration")
    if seen == meta["generation"]:
        return
    names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    counts = {name: spec.get("replicas", 1) for name in names}
    operation = {
        "op": "add",
        "path": "/status",
        "value": {"observedGeneration": meta["generation"], **counts},
    }
    try:
        await api.json_patch(
            DEPLOYMENTS,
            str(meta["name"]),
            str(meta["namespace"]),
            [operation],
            manager="controller",
            subresource="/status",
        )
    except ApiError as error:
        if not error.not_found:
            raise
