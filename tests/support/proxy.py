"""A small TLS proxy between one component and the API server that answers in its place when a test asks for it."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubefoundry_local.ports import free_port
from kubefoundry_local.suite import Component, Suite
from kubefoundry_sdk.cluster import credentials


@dataclass(frozen=True, slots=True)
class Fault:
    """An answer in the server's place. retry_after: seconds, as a header. message: its own words, for a person.
    body: the whole answer, where it is no Status."""

    code: int
    reason: str
    retry_after: int | None = None
    message: str = ""
    body: Any = None


Rule = Callable[[web.Request], Fault | None]
"""Asked for every request; a Fault is answered instead of passing it on."""


@dataclass(slots=True)
class Proxy:
    """rule: what goes wrong now. done: called once the server has answered, before the component hears of it.
    answered: how often each code was made up, and under `passed` what went on."""

    server: str
    rule: Rule = lambda request: None
    done: Callable[[web.Request], None] = lambda request: None
    answered: Counter[str] = field(default_factory=Counter)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _watches: set[web.StreamResponse] = field(default_factory=set)
    _session: aiohttp.ClientSession | None = None

    def cut_watches(self) -> int:
        """Breaks the connections of all watches that are open; how many."""
        cut = list(self._watches)
        for response in cut:
            payload = response._payload_writer
            if payload is not None and payload.transport is not None:
                payload.transport.abort()
        return len(cut)

    async def until(self, holds: Callable[[Counter[str]], bool], seconds: float = 30) -> None:
        """Waits until the counts are these."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: holds(self.answered))

    async def handle(self, request: web.Request) -> web.StreamResponse:
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
        ) as answer:
            kept = {
                key: answer.headers[key] for key in ("Content-Type", "Retry-After") if key in answer.headers
            }
            if not watching:
                body = await answer.read()
                self.done(request)
                return web.Response(status=answer.status, body=body, headers=kept)
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            self._watches.add(response)
            try:
                # The server may end within an answer, as it does when it is restarted.
                with suppress(aiohttp.ClientError):
                    async for chunk in answer.content.iter_any():
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
    """A proxy for the component (not started yet): its environment is led through it."""
    authority, key = certificate(folder)
    upstream = ssl.create_default_context(cafile=str(server_ca))
    async with _listening(Proxy(server), authority, key, upstream) as (proxy, port):
        account = Path(component.environment["KUBEFOUNDRY_SERVICE_ACCOUNT_DIR"])
        (account / "ca.crt").write_bytes(authority.read_bytes())
        component.environment["KUBERNETES_SERVICE_PORT"] = str(port)
        yield proxy


@asynccontextmanager
async def before(kubeconfig: Path, folder: Path) -> AsyncIterator[tuple[Proxy, Path]]:
    """A proxy for programs of its user, and the kubeconfig that leads to it, in that folder."""
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
    """The suite's component restarted behind a proxy, and as it was afterwards. `folder`: for a certificate."""
    component = suite.components[name]
    as_it_was = dict(component.environment)
    account = Path(as_it_was["KUBEFOUNDRY_SERVICE_ACCOUNT_DIR"])
    authority = (account / "ca.crt").read_bytes()
    (folder / "ca.crt").write_bytes(authority)
    component.stop()
    try:
        async with between(component, suite.plane.server, folder / "ca.crt", folder / "proxy") as made:
            component.start()
            try:
                # in a thread: the proxy has to run meanwhile
                await asyncio.to_thread(component.wait_ready)
                yield made
            finally:
                component.stop()
    finally:
        component.environment = as_it_was
        (account / "ca.crt").write_bytes(authority)
        component.start()
        component.wait_ready()


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for the loopback address."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test proxy")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "proxy.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "proxy.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return folder / "proxy.crt", folder / "proxy.key"
