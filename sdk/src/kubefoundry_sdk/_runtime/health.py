"""`/healthz`, `/readyz` and `/metrics` of a process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from kubefoundry_sdk._runtime.listening import bind

Check = Callable[[], str | None]
"""Returns None if all is well, else the problem in one line."""


async def serve(*, health_port: int, metrics_port: int, healthy: Check, ready: Check) -> list[web.AppRunner]:
    """Serve on all addresses; port 0 disables a listener. Raise OSError if a port is taken."""
    routes: dict[int, list[web.RouteDef]] = {}
    if health_port:
        routes.setdefault(health_port, []).extend(
            [web.get("/healthz", _answer(healthy)), web.get("/readyz", _answer(ready))]
        )
    if metrics_port:
        routes.setdefault(metrics_port, []).append(web.get("/metrics", _metrics))
    runners = []
    for port, handlers in routes.items():
        app = web.Application()
        app.add_routes(handlers)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            bound = bind(port)
        except OSError as error:
            raise OSError(error.errno, f"port {port}: {error.strerror}") from error
        await web.SockSite(runner, bound).start()
        runners.append(runner)
    return runners


def _answer(check: Check) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handler(_: web.Request) -> web.StreamResponse:
        problem = check()
        return web.Response(text=(problem or "ok") + "\n", status=503 if problem else 200)

    return handler


async def _metrics(_: web.Request) -> web.StreamResponse:
    return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})
