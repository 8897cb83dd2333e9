"""The HTTP servers of a Ray pod on its own address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from aiohttp import web

from kubefoundry_nodes.ray.serve import Serve

DASHBOARD: Final = 8265
PROXY: Final = 8000


class Ports:
    """The open ports of a pod. `serve` returns the current Ray Serve of its RayCluster."""

    def __init__(self, address: str, serve: Callable[[], Serve], *, head: bool) -> None:
        self._address = address
        self._serve = serve
        self._head = head
        self._runners: list[web.AppRunner] = []

    async def open(self) -> None:
        await self._listen(PROXY, web.get("/-/healthz", self._health), web.get("/v1/models", self._models))
        if self._head:
            path = "/api/serve/applications/"
            await self._listen(DASHBOARD, web.get(path, self._applications), web.put(path, self._submit))

    async def close(self) -> None:
        for runner in self._runners:
            await runner.cleanup()

    async def _listen(self, port: int, *routes: web.RouteDef) -> None:
        app = web.Application()
        app.add_routes(routes)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, self._address, port).start()
        self._runners.append(runner)

    async def _applications(self, request: web.Request) -> web.Response:
        return web.json_response({"applications": self._serve().applications()})

    async def _submit(self, request: web.Request) -> web.Response:
        self._serve().submit(await request.json())
        return web.Response()

    async def _health(self, request: web.Request) -> web.Response:
        """Report success from the first configuration on, as Serve's proxies do, whatever the engines do."""
        if self._serve().config is None:
            return web.Response(status=503, text="Serve is not running")
        return web.Response(text="success")

    async def _models(self, request: web.Request) -> web.Response:
        models = self._serve().models
        if not models:
            return web.json_response({"error": {"message": "no engine runs"}}, status=503)
        return web.json_response({"object": "list", "data": models})
