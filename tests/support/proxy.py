"""A TLS proxy between a component and the API server that injects the faults of a test."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web

from kubefoundry_local.ports import free_port
from kubefoundry_local.suite import Component, Suite
from kubefoundry_sdk._cluster import credentials
from kubefoundry_simulators.certificate import self_signed
from support.waiting import SECONDS


@dataclass(frozen=True, slots=True)
class Fault:
    """A response in place of the server's.

    Attributes:
        code: HTTP status.
        reason: Reason of the Status.
        retry_after: Seconds in the header `Retry-After`.
        message: Message of the Status.
        body: The whole body, if it is no Status.
    """

    code: int
    reason: str
    retry_after: int | None = None
    message: str = ""
    body: Any = None


Rule = Callable[[web.Request], Fault | None]
"""Called for every request. Returns a fault, or None to pass the request on."""


@dataclass(slots=True)
class Proxy:
    """A running proxy.

    Attributes:
        server: URL of the API server.
        rule: The present rule for faults.
        done: Called after the server's response, before the component gets it.
        answered: Number of injected faults by code, and of passed requests as `passed`.
        changed: Notified after a change of `answered`.
    """

    server: str
    rule: Rule = lambda request: None
    done: Callable[[web.Request], None] = lambda request: None
    answered: Counter[str] = field(default_factory=Counter)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _watches: set[web.StreamResponse] = field(default_factory=set)
    _session: aiohttp.ClientSession | None = None

    def cut_watches(self) -> int:
        """Break the connections of all open watches, and return their number."""
        cut = list(self._watches)
        for response in cut:
            payload = response._payload_writer
            if payload is not None and payload.transport is not None:
                payload.transport.abort()
        return len(cut)

    async def until(self, holds: Callable[[Counter[str]], bool], seconds: float = SECONDS) -> None:
        """Wait until `holds` is true of the counts."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: holds(self.answered))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request with a fault, or pass it on."""
        if fault := self.rule(request):
            await self._count(str(fault.code))
            body = fault.body or {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "code": fault.code,
                "reason": fault.reason,
                "message": fault.message or f"made up by the test: {fault.reason}",
            }
            headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after else {}
            return web.Response(
                status=fault.code, body=json.dumps(body), content_type="application/json", headers=headers
            )
        await self._count("passed")
        try:
            return await self._pass_on(request)
        except aiohttp.ClientError as error:
            raise web.HTTPBadGateway(text=f"the API server is not there: {error}") from error

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        assert self._session is not None
        # kubectl writes true, our client 1.
        watching = request.query.get("watch") in ("1", "true")
        headers = {
            key: value for key, value in request.headers.items() if key not in ("Host", "Content-Length")
        }
        async with self._session.request(
            request.method,
            f"{self.server}{request.path_qs}",
            headers=headers,
            data=await request.read() or None,
        ) as upstream_response:
            response_headers = {
                key: upstream_response.headers[key]
                for key in ("Content-Type", "Retry-After")
                if key in upstream_response.headers
            }
            if not watching:
                body = await upstream_response.read()
                self.done(request)
                return web.Response(status=upstream_response.status, body=body, headers=response_headers)
            response = web.StreamResponse(status=upstream_response.status, headers=response_headers)
            await response.prepare(request)
            self._watches.add(response)
            try:
                # A restarted server ends in the middle of a response.
                with suppress(aiohttp.ClientError):
                    async for chunk in upstream_response.content.iter_any():
                        await response.write(chunk)
            finally:
                self._watches.discard(response)
            return response

    async def _count(self, what: str) -> None:
        async with self.changed:
            self.answered[what] += 1
            self.changed.notify_all()


@asynccontextmanager
async def between(component: Component, server: str, server_ca: Path, folder: Path) -> AsyncIterator[Proxy]:
    """Run a proxy for a component that is not started yet, and change its environment to use the proxy."""
    authority, key = certificate(folder)
    upstream = ssl.create_default_context(cafile=str(server_ca))
    async with _listening(Proxy(server), authority, key, upstream) as (proxy, port):
        account = Path(component.environment["KUBEFOUNDRY_SERVICE_ACCOUNT_DIR"])
        (account / "ca.crt").write_bytes(authority.read_bytes())
        component.environment["KUBERNETES_SERVICE_PORT"] = str(port)
        yield proxy


@asynccontextmanager
async def before(kubeconfig: Path, folder: Path) -> AsyncIterator[tuple[Proxy, Path]]:
    """Run a proxy for programs of a kubeconfig's user, and yield it with a kubeconfig for it."""
    document = yaml.safe_load(await asyncio.to_thread(kubeconfig.read_text))
    [cluster] = document["clusters"]
    authority, key = certificate(folder)
    upstream = credentials.from_kubeconfig(str(kubeconfig)).tls
    async with _listening(Proxy(cluster["cluster"]["server"]), authority, key, upstream) as (proxy, port):
        cluster["cluster"] = {
            "server": f"https://127.0.0.1:{port}",
            "certificate-authority": str(authority),
        }
        (folder / "kubeconfig").write_text(yaml.safe_dump(document))
        yield proxy, folder / "kubeconfig"


@asynccontextmanager
async def _listening(
    proxy: Proxy, authority: Path, key: Path, upstream: ssl.SSLContext | None
) -> AsyncIterator[tuple[Proxy, int]]:
    port = free_port()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority, key)
    app = web.Application(client_max_size=16 * 2**20)
    app.router.add_route("*", "/{path:.*}", proxy.handle)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=upstream or True, limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
    ) as session:
        proxy._session = session
        try:
            yield proxy, port
        finally:
            await runner.cleanup()


@asynccontextmanager
async def behind(suite: Suite, name: str, folder: Path) -> AsyncIterator[Proxy]:
    """Restart a component behind a proxy during the block, and without it afterwards."""
    component = suite.components[name]
    environment = dict(component.environment)
    account = Path(environment["KUBEFOUNDRY_SERVICE_ACCOUNT_DIR"])
    authority = (account / "ca.crt").read_bytes()
    (folder / "ca.crt").write_bytes(authority)
    component.stop()
    try:
        async with between(component, suite.plane.server, folder / "ca.crt", folder / "proxy") as proxy:
            component.start()
            try:
                # In a thread, because the proxy runs in this event loop.
                await asyncio.to_thread(component.wait_ready)
                yield proxy
            finally:
                component.stop()
    finally:
        component.environment = environment
        (account / "ca.crt").write_bytes(authority)
        component.start()
        component.wait_ready()


@asynccontextmanager
async def all_behind(suite: Suite, names: Sequence[str], folder: Path) -> AsyncIterator[dict[str, Proxy]]:
    """Install and start components, each behind a proxy of its own. The suite is stopped at the end."""
    async with AsyncExitStack() as stack:
        proxies = {}
        for name in names:
            component = suite.install(name)
            authority = folder / f"{name}.crt"
            account = Path(component.environment["KUBEFOUNDRY_SERVICE_ACCOUNT_DIR"])
            authority.write_bytes((account / "ca.crt").read_bytes())
            proxies[name] = await stack.enter_async_context(
                between(component, suite.plane.server, authority, folder / name)
            )
        # In a thread: they give their Leases back through the proxies.
        stack.push_async_callback(asyncio.to_thread, suite.stop)
        await asyncio.to_thread(suite.start, *names)
        yield proxies


def certificate(folder: Path) -> tuple[Path, Path]:
    """Write a certificate for the loopback address that expires in an hour. Return its file and the key's."""
    signed, key = self_signed("127.0.0.1", timedelta(hours=1))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "proxy.crt").write_bytes(signed)
    (folder / "proxy.key").write_bytes(key)
    return folder / "proxy.crt", folder / "proxy.key"
