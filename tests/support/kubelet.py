"""A kubelet's logs, for an API server that has no node: what it asks for is a server of ours on this machine."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from kubefoundry_sdk.api.kinds import PODS, Kind, Object
from kubefoundry_sdk.cluster.client import Client
from support.pods import account, ready
from support.proxy import certificate

NODES = Kind("", "v1", "nodes", "Node", namespaced=False)


@dataclass(slots=True)
class Kubelet:
    """written: the lines of every container. Who follows gets those that come later."""

    node: str
    written: list[str] = field(default_factory=list)
    followers: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def write(self, line: str) -> None:
        async with self.changed:
            self.written.append(line)
            self.changed.notify_all()

    async def until_followed(self) -> None:
        """Until somebody reads along."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.followers > 0)

    async def until_left(self) -> None:
        """Until nobody reads along."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.followers == 0)

    async def pod(self, api: Client, namespace: str, name: str, labels: dict[str, str]) -> None:
        """A pod that runs on this node."""
        await account(api, namespace)
        body: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {
                "nodeName": self.node,
                "containers": [{"name": "main", "image": "example.com/engine:1"}],
            },
        }
        await api.create(PODS, body, manager="kubelet")
        change = [{"op": "add", "path": "/status", "value": ready()}]
        await api.json_patch(PODS, f"{name}/status", namespace, change, manager="kubelet")

    async def log(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        reported, follow = 0, request.query.get("follow") == "true"
        await self._follow(1 if follow else 0)
        try:
            while True:
                for line in self.written[reported:]:
                    reported += 1
                    await response.write(f"{line}\n".encode())
                if not follow:
                    return response
                await self._more_than(reported)
        finally:
            await self._follow(-1 if follow else 0)

    async def _more_than(self, reported: int) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.written) > reported)

    async def _follow(self, more: int) -> None:
        async with self.changed:
            self.followers += more
            self.changed.notify_all()


@asynccontextmanager
async def kubelet(api: Client, node: str, folder: Path) -> AsyncIterator[Kubelet]:
    """A Node of that name whose kubelet answers on the loopback address. folder: for its certificate."""
    made = Kubelet(node)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate(folder))
    app = web.Application()
    app.router.add_get("/containerLogs/{path:.*}", made.log)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": runner.addresses[0][1]}},
        }
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "status": status}
        there = await api.create(NODES, body, manager="kubelet")
        try:
            yield made
        finally:
            await api.delete(NODES, node, None, uid=there["metadata"]["uid"])
    finally:
        await runner.cleanup()
