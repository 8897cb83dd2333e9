"""A provider in plain kopf, written from the contract alone: `kopf run --standalone --all-namespaces provider.py`.

kopf only reports that something may have changed. Each turn reads the objects again (turn.py), so a lost event costs
time but never causes a wrong decision. Periodic lists replace lost events.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any, Final

import aiohttp
import kopf
import registration
import widget
from aiohttp import web
from api_server import Api, Object, Refused, login
from model_deployment import MANAGER, NAME
from prometheus_client import Counter, Histogram, generate_latest
from turn import Memory, Turn

log = logging.getLogger(__name__)
Key = tuple[str, str]
Failed = (Refused, aiohttp.ClientError, TimeoutError)
DEPLOYMENTS: Final = ("kubefoundry.ai", "v1alpha1", "modeldeployments")
CRDS: Final = ("apiextensions.k8s.io", "v1", "customresourcedefinitions")
RESYNC: Final = 60.0
"""Seconds between two lists."""

TURNS: Final = Histogram("kubefoundry_reconciliation_duration_seconds", "Seconds of a turn.", ["provider"])
ERRORS: Final = Counter("kubefoundry_reconciliation_errors", "Turns that failed.", ["provider", "error_type"])


def seconds(name: str, default: float) -> float:
    return float(os.environ.get(f"KUBEFOUNDRY_{name}") or default)


class Provider:
    """The reconcilers of all ModelDeployments, and the registration."""

    def __init__(self) -> None:
        self.api = Api(MANAGER)
        self.crd: Object | None = None
        self.listed = self.reported = False
        self.poked = asyncio.Event()
        self.wake: dict[Key, asyncio.Event] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.background(self.beat())
        self.background(self.resync())

    def background(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def soon(self, key: Key) -> None:
        """Request a turn for a ModelDeployment. Turns of the same ModelDeployment never overlap."""
        if key not in self.wake:
            self.wake[key] = asyncio.Event()
            self.background(self.turns(key))
        self.wake[key].set()

    async def turns(self, key: Key) -> None:
        """Run turns until none is due. Retry failures after 0.2 s, doubling to 5 minutes."""
        wake, memory, delay = self.wake[key], Memory(), 0.2
        due: float | None = None
        while True:
            try:
                async with asyncio.timeout(due):
                    await wake.wait()
            except TimeoutError:
                pass
            wake.clear()
            try:
                with TURNS.labels(NAME).time():
                    next_turn = await self.turn(key, memory)
                due, delay = next_turn, 0.2
            except Failed as error:
                ERRORS.labels(NAME, "conflict" if getattr(error, "code", 0) == 409 else "api").inc()
                log.info("%s/%s: %s; again in %.1f s", *key, error, delay)
                due, delay = getattr(error, "wait", None) or delay, min(delay * 2, 300.0)
            except Exception:
                ERRORS.labels(NAME, "internal").inc()
                log.exception("%s/%s: internal error", *key)
                due, delay = delay, min(delay * 2, 300.0)
            else:
                if next_turn is GONE and not wake.is_set():
                    del self.wake[key]
                    return

    async def turn(self, key: Key, memory: Memory) -> float | None:
        namespace, name = key
        path = f"namespaces/{namespace}"
        live = await self.api.get(f"/apis/kubefoundry.ai/v1alpha1/{path}/modeldeployments/{name}")
        if live is None:
            return GONE
        existing = await self.api.get(f"/apis/{widget.API_VERSION}/{path}/widgets/{name}")
        timeout = seconds("FINALIZER_TIMEOUT", 300)
        return await Turn(self.api, live, self.crd, timeout, memory, existing).run()

    async def read_crd(self) -> None:
        """Read the CRD. A change of its spec affects every ModelDeployment."""
        crd = await self.api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{widget.CRD}")
        conditions = {
            item["type"]: item["status"] for item in ((crd or {}).get("status") or {}).get("conditions") or ()
        }
        if conditions.get("Established") != "True" or conditions.get("Terminating") == "True":
            crd = None
        changed = (crd or {}).get("spec") != (self.crd or {}).get("spec")
        self.crd = crd
        if changed:
            await self.list()

    async def list(self) -> None:
        deployments = await self.api.call("GET", "/apis/kubefoundry.ai/v1alpha1/modeldeployments")
        for deployment in deployments["items"]:
            self.soon((deployment["metadata"]["namespace"], deployment["metadata"]["name"]))
        self.listed = True

    async def beat(self) -> None:
        """Send three heartbeats per heartbeat time-out, and one at every change of the CRD."""
        interval, registered = seconds("HEARTBEAT_TIMEOUT", 180) / 3, False
        while True:
            self.poked.clear()
            wait = interval
            try:
                if not registered:
                    await registration.register(self.api)
                    registered = True
                await self.read_crd()
                await registration.report(self.api, self.crd)
                self.reported = True
            except Failed as error:
                log.warning("the registration failed: %s", error)
                wait = 1.0
            except Exception:
                log.exception("the registration: internal error")
            try:
                async with asyncio.timeout(wait):
                    await self.poked.wait()
            except TimeoutError:
                pass

    async def resync(self) -> None:
        """List all ModelDeployments periodically: kopf reports no deletion during an outage of the API server."""
        while True:
            try:
                await self.list()
            except Failed as error:
                log.warning("listing failed: %s", error)
            await asyncio.sleep(RESYNC if self.listed else 1.0)

    async def ready(self, _: web.Request) -> web.Response:
        ready = self.listed and self.reported
        return web.Response(text="ok\n" if ready else "not registered yet\n", status=200 if ready else 503)


GONE: Final = -1.0
"""Result of a turn whose ModelDeployment is gone."""

running: Provider | None = None
servers: list[web.AppRunner] = []
kopf.on.login()(login)


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
    global running
    settings.posting.enabled = False
    settings.networking.error_backoffs = (0.1, 0.2, 0.5, 1, 1, 2, 2)
    running = Provider()
    provider = running

    async def alive(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest())

    for port, routes in {
        int(seconds("HEALTH_PORT", 8081)): {"/healthz": alive, "/readyz": provider.ready},
        int(seconds("METRICS_PORT", 8080)): {"/metrics": metrics},
    }.items():
        app = web.Application()
        app.add_routes([web.get(path, answer) for path, answer in routes.items()])
        server = web.AppRunner(app, access_log=None)
        await server.setup()
        await web.TCPSite(server, port=port).start()
        servers.append(server)


@kopf.on.cleanup()
async def end(**_: Any) -> None:
    for server in servers:
        await server.cleanup()
    if running:
        for task in list(running.tasks):
            task.cancel()
        await asyncio.gather(*running.tasks, return_exceptions=True)
        await running.api.close()


@kopf.on.event(*DEPLOYMENTS)
@kopf.on.event(widget.GROUP, "v1", "widgets")
async def changed(namespace: str | None, name: str, **_: Any) -> None:
    """Request a turn. A Widget has the name of its ModelDeployment."""
    if running and namespace:
        running.soon((namespace, name))


@kopf.on.event(*CRDS, when=lambda name, **_: name == widget.CRD)
async def crd_changed(**_: Any) -> None:
    if running:
        running.poked.set()
