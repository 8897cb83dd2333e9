"""A simulated kubelet that serves logs, for an API server without nodes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from kubefoundry_sdk._api.kinds import PODS, Kind, Object
from kubefoundry_sdk._cluster.client import Client
from support.pods import account, ready
from support.proxy import certificate

NODES = Kind("", "v1", "nodes", "Node", namespaced=False)


@dataclass(slots=True)
class Kubelet:
    """A simulated kubelet.

    Attributes:
        node: Name of its node.
        written: The lines of every container's log.
        followers: The number of clients that follow a log.
        changed: Notified after a change of the lines or the followers.
    """

    node: str
    written: list[str] = field(default_factory=list)
    followers: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def write(self, line: str) -> None:
        """Add a line to the logs."""
        async with self.changed:
            self.written.append(line)
            self.changed.notify_all()

    async def until_followed(self) -> None:
        """Wait until a client follows a log."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.followers > 0)

    async def until_left(self) -> None:
        """Wait until no client follows a log."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.followers == 0)

    async def pod(self, api: Client, namespace: str, name: str, labels: dict[str, str]) -> None:
        """Create a ready pod on this node."""
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
        """Serve a log. With `follow=true` send later lines, too."""
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
    """Create a Node, and serve its kubelet on the loopback address. `folder` gets the certificate."""
    server = Kubelet(node)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate(folder))
    app = web.Application()
    app.router.add_get("/containerLogs/{path:.*}", server.log)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": runner.addresses[0][1]}},
        }
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "status": status}
        created = await api.create(NODES, body, manager="kubelet")
        try:
            yield server
        finally:
            await api.delete(NODES, node, None, uid=created["metadata"]["uid"])
    finally:
        await runner.cleanup()
